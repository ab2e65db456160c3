"""How one source is read with a browser: a value."""

from msgspec import Struct

from longstop.fetching.browser.base import LADDER, Mode


class BrowserPolicy(Struct, frozen=True, kw_only=True):
    """How one source is read with a browser."""

    #: The ways that may be used; navigation always may.
    modes: tuple[Mode, ...] = LADDER
    #: Paths of JSON that the site's pages ask for by themselves: it is taken as it goes by, and what else is wanted is
    #: asked for from inside a page. Without any, every GET is taken to come by itself.
    calls: tuple[str, ...] = ()
    is_style_blocked: bool = True
    #: From the question to the answer, whichever way.
    page_seconds: float = 30.0
    #: Until a page that is loaded gives its first answer.
    navigation_seconds: float = 30.0
    #: How long an open page is listened to before it is asked.
    passive_seconds: float = 10.0
    #: What an open page got longer ago is not handed out as news.
    sitting_seconds: float = 1.0
    #: A page that was loaded so recently is not loaded again for another answer of the same load.
    fresh_seconds: float = 2.0
    idle_seconds: float = 60.0
    #: A page that was answered so often, or so much, since it was loaded is relieved: the browser keeps all of it.
    max_answers: int = 1000
    max_answer_bytes: int = 10_000_000
    #: Between two pages that are relieved.
    relief_seconds: float = 5.0
    max_tabs: int = 64
    #: Pages that are loaded at one time.
    max_loads: int = 4
    #: How long a page waits for its turn to be loaded.
    queue_seconds: float = 10.0
    probe_seconds: float = 2.0
    #: How long a page may take to draw what it has got; after that it is taken as it stands.
    settle_seconds: float = 3.0
    #: An open page that got nothing for so long has stopped: it is loaded again before what it has drawn is taken.
    living_seconds: float = 10.0
    picture_seconds: float = 5.0
