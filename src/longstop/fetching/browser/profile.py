"""How a session looks: a desktop browser of the real version, at home in the country that its proxy is in. Pure."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Profile(Struct, frozen=True, kw_only=True):
    """What a context tells about itself; all parts agree with each other."""

    user_agent: str
    #: As `navigator.platform` says it.
    platform: str
    locale: str
    languages: tuple[str, ...]
    time_zone: str
    latitude: float
    longitude: float
    width: int
    height: int
    #: The version of the browser, all of it.
    version: str

    @property
    def user_agent_override(self) -> dict[str, Any]:
        """What `Emulation.setUserAgentOverride` is told: the client hints agree with the user agent."""
        major = self.version.partition(".")[0]
        brands = (("Chromium", major, self.version), ("Google Chrome", major, self.version), _GREASE)
        system, system_version = _HINTED[self.platform]
        return {
            "userAgent": self.user_agent,
            "acceptLanguage": ",".join(self.languages),
            "platform": self.platform,
            "userAgentMetadata": {
                "brands": [{"brand": name, "version": short} for name, short, _ in brands],
                "fullVersionList": [{"brand": name, "version": whole} for name, _, whole in brands],
                "platform": system,
                "platformVersion": system_version,
                "architecture": "x86",
                "bitness": "64",
                "model": "",
                "mobile": False,
            },
        }

    def metrics_override(self, scale: float) -> dict[str, Any]:
        """Return what `Emulation.setDeviceMetricsOverride` is told: the page's own measures, drawn at this scale."""
        return {
            "width": self.width,
            "height": self.height,
            "screenWidth": self.width,
            "screenHeight": self.height,
            "deviceScaleFactor": 1,
            "mobile": False,
            "scale": scale,
        }

    @property
    def accept_language(self) -> str:
        return ",".join(
            language if place == 0 else f"{language};q={1 - place / 10:.1f}"
            for place, language in enumerate(self.languages)
        )


class _Country(Struct, frozen=True):
    locale: str
    languages: tuple[str, ...]
    time_zone: str
    latitude: float
    longitude: float


_COUNTRIES: Mapping[str, _Country] = {
    "us": _Country("en-US", ("en-US", "en"), "America/New_York", 40.71, -74.01),
    "gb": _Country("en-GB", ("en-GB", "en"), "Europe/London", 51.51, -0.13),
    "in": _Country("en-IN", ("en-IN", "en"), "Asia/Kolkata", 19.08, 72.88),
    "au": _Country("en-AU", ("en-AU", "en"), "Australia/Sydney", -33.87, 151.21),
    "de": _Country("de-DE", ("de-DE", "de", "en"), "Europe/Berlin", 52.52, 13.41),
    "fr": _Country("fr-FR", ("fr-FR", "fr", "en"), "Europe/Paris", 48.86, 2.35),
    "es": _Country("es-ES", ("es-ES", "es", "en"), "Europe/Madrid", 40.42, -3.7),
    "it": _Country("it-IT", ("it-IT", "it", "en"), "Europe/Rome", 41.9, 12.5),
    "nl": _Country("nl-NL", ("nl-NL", "nl", "en"), "Europe/Amsterdam", 52.37, 4.9),
    "br": _Country("pt-BR", ("pt-BR", "pt", "en"), "America/Sao_Paulo", -23.55, -46.63),
}
#: Without a proxy, or with one in a country that is not in the table.
_ANYWHERE = "us"

#: Desktop systems: what stands in the user agent, and the platform that goes with it.
_SYSTEMS = (
    ("Windows NT 10.0; Win64; x64", "Win32"),
    ("Macintosh; Intel Mac OS X 10_15_7", "MacIntel"),
    ("X11; Linux x86_64", "Linux x86_64"),
)
#: How client hints call the same systems, and their versions.
_HINTED = {"Win32": ("Windows", "15.0.0"), "MacIntel": ("macOS", "14.6.0"), "Linux x86_64": ("Linux", "6.8.0")}
#: A brand that is none, as every Chromium lists one.
_GREASE = ("Not:A-Brand", "8", "8.0.0.0")
_VIEWPORTS = ((1920, 1080), (1536, 864), (1440, 900), (1366, 768))


def countries() -> tuple[str, ...]:
    return tuple(_COUNTRIES)


def choose_profile(version: str, country: str = "", dice: int = 0) -> Profile:
    """Return the look of a session; the same dice give the same look.

    The version is that of the Chromium that runs: a browser that says another one is found out by what it can do.
    """
    home = _COUNTRIES.get(country.lower(), _COUNTRIES[_ANYWHERE])
    system, platform = _SYSTEMS[dice % len(_SYSTEMS)]
    width, height = _VIEWPORTS[dice // len(_SYSTEMS) % len(_VIEWPORTS)]
    return Profile(
        user_agent=(
            f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) "
            f"Chrome/{version.partition('.')[0]}.0.0.0 Safari/537.36"
        ),
        platform=platform,
        locale=home.locale,
        languages=home.languages,
        time_zone=home.time_zone,
        latitude=home.latitude,
        longitude=home.longitude,
        width=width,
        height=height,
        version=version,
    )
