"""What a browser without a person lacks, made up for by playwright-stealth's scripts: those that it needs, no others.

Every script runs in every frame of every page, and costs more than most pages' own. Language, platform, vendor and
client hints need none: Chromium takes them from the session's profile. What marks an automated browser is switched
off where it is started.
"""

from functools import cache

from playwright_stealth import ALL_EVASIONS_DISABLED_KWARGS, Stealth

from longstop.fetching.browser.base import BrowserKind

#: No machine with a screen draws with SwiftShader.
_ALWAYS = ("webgl_vendor",)
#: What the shell lacks of a whole browser.
_SHELL = (
    "chrome_app",
    "chrome_csi",
    "chrome_load_times",
    "navigator_permissions",
    "navigator_plugins",
)
#: A frame that was to show an address stays empty here, and nobody looks into it; one without is a looking-glass.
_WHERE_LOOKED_AT = """(() => {
  try { if (frameElement && frameElement.src && !frameElement.src.startsWith('about:')) return; } catch { return; }
SCRIPT
})();"""


@cache
def disguise_script(kind: BrowserKind) -> str:
    """Return the script that runs in a document before its own."""
    needed = (*_ALWAYS, *_SHELL) if kind is BrowserKind.SHELL else _ALWAYS
    return _WHERE_LOOKED_AT.replace("SCRIPT", Stealth(**_only(needed)).script_payload)


def _only(needed: tuple[str, ...]) -> dict[str, object]:
    """Return the choice of these scripts alone; a default that goes with a script left out is taken back as well."""
    unused = {"navigator_languages_override": None, "navigator_platform_override": None}
    return {**ALL_EVASIONS_DISABLED_KWARGS, **unused, **dict.fromkeys(needed, True)}
