"""How a session presents itself: a desktop browser of the real version, in the country of its proxy. Pure.

The profile sets user agent, language, time zone and screen; Chromium itself is started without its automation marks.
What is left is covered by scripts of playwright-stealth. They run in every frame of every page and cost more than most
pages' own, so only those that are needed are used.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from playwright_stealth import ALL_EVASIONS_DISABLED_KWARGS, Stealth

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind


class Country(Struct, frozen=True):
    """What a browser shows of the country that it is in."""

    locale: str
    languages: tuple[str, ...]
    time_zone: str
    latitude: float
    longitude: float


class Profile(Struct, frozen=True, kw_only=True):
    """What a browser context shows; all parts are consistent."""

    user_agent: str
    #: As in `navigator.platform`.
    platform: str
    country: Country
    width: int
    height: int
    #: The full version of the browser.
    version: str

    @property
    def user_agent_override(self) -> dict[str, Any]:
        """Parameters of `Emulation.setUserAgentOverride`: the client hints agree with the user agent."""
        major = self.version.partition(".")[0]
        brands = (("Chromium", major, self.version), ("Google Chrome", major, self.version), _GREASE)
        system, system_version = _CLIENT_HINTS[self.platform]
        return {
            "userAgent": self.user_agent,
            "acceptLanguage": ",".join(self.country.languages),
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
        """Return the parameters of `Emulation.setDeviceMetricsOverride`: the screen, painted at this scale."""
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
            for place, language in enumerate(self.country.languages)
        )


COUNTRIES: Mapping[str, Country] = {
    "us": Country("en-US", ("en-US", "en"), "America/New_York", 40.71, -74.01),
    "gb": Country("en-GB", ("en-GB", "en"), "Europe/London", 51.51, -0.13),
    "in": Country("en-IN", ("en-IN", "en"), "Asia/Kolkata", 19.08, 72.88),
    "au": Country("en-AU", ("en-AU", "en"), "Australia/Sydney", -33.87, 151.21),
    "de": Country("de-DE", ("de-DE", "de", "en"), "Europe/Berlin", 52.52, 13.41),
    "fr": Country("fr-FR", ("fr-FR", "fr", "en"), "Europe/Paris", 48.86, 2.35),
    "es": Country("es-ES", ("es-ES", "es", "en"), "Europe/Madrid", 40.42, -3.7),
    "it": Country("it-IT", ("it-IT", "it", "en"), "Europe/Rome", 41.9, 12.5),
    "nl": Country("nl-NL", ("nl-NL", "nl", "en"), "Europe/Amsterdam", 52.37, 4.9),
    "br": Country("pt-BR", ("pt-BR", "pt", "en"), "America/Sao_Paulo", -23.55, -46.63),
}
#: Used without a proxy, or with one in a country that is not in the table.
_DEFAULT_COUNTRY = "us"

#: Desktop systems: the text in the user agent, and the matching platform.
_SYSTEMS = (
    ("Windows NT 10.0; Win64; x64", "Win32"),
    ("Macintosh; Intel Mac OS X 10_15_7", "MacIntel"),
    ("X11; Linux x86_64", "Linux x86_64"),
)
#: The names and versions of the same systems in client hints.
_CLIENT_HINTS = {"Win32": ("Windows", "15.0.0"), "MacIntel": ("macOS", "14.6.0"), "Linux x86_64": ("Linux", "6.8.0")}
#: A made-up brand, as every Chromium lists one.
_GREASE = ("Not:A-Brand", "8", "8.0.0.0")
_VIEWPORTS = ((1920, 1080), (1536, 864), (1440, 900), (1366, 768))


def choose_profile(version: str, country: str = "", seed: int = 0) -> Profile:
    """Return the profile of a session; the same seed gives the same profile.

    The version is that of the running Chromium: sites detect a wrong version by the features that it has.
    """
    system, platform = _SYSTEMS[seed % len(_SYSTEMS)]
    width, height = _VIEWPORTS[seed // len(_SYSTEMS) % len(_VIEWPORTS)]
    return Profile(
        user_agent=(
            f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) "
            f"Chrome/{version.partition('.')[0]}.0.0.0 Safari/537.36"
        ),
        platform=platform,
        country=COUNTRIES.get(country.lower(), COUNTRIES[_DEFAULT_COUNTRY]),
        width=width,
        height=height,
        version=version,
    )


#: SwiftShader as WebGL renderer shows that there is no screen.
_ALWAYS_NEEDED = ("webgl_vendor",)
#: What the headless shell is missing compared to the complete browser.
_SHELL_NEEDS = ("chrome_app", "chrome_csi", "chrome_load_times", "navigator_permissions", "navigator_plugins")
#: Frames with a URL stay empty here, so no script inspects them. Frames without one are used for inspection.
_RUN_WHERE_INSPECTED = """(() => {
  try { if (frameElement && frameElement.src && !frameElement.src.startsWith('about:')) return; } catch { return; }
SCRIPT
})();"""


@cache
def stealth_script(kind: BrowserKind) -> str:
    """Return the script that runs in a document before its own."""
    needed = (*_ALWAYS_NEEDED, *_SHELL_NEEDS) if kind is BrowserKind.SHELL else _ALWAYS_NEEDED
    return _RUN_WHERE_INSPECTED.replace("SCRIPT", Stealth(**_options(needed)).script_payload)


def _options(needed: tuple[str, ...]) -> dict[str, object]:
    """Return options that enable only these scripts; defaults of disabled scripts are removed as well."""
    unused = {"navigator_languages_override": None, "navigator_platform_override": None}
    return {**ALL_EVASIONS_DISABLED_KWARGS, **unused, **dict.fromkeys(needed, True)}
