"""From curl's errors to ours: one table, read from the particular to the general."""

import re

from curl_cffi import CurlError
from curl_cffi.const import CurlECode
from curl_cffi.requests import exceptions as curl

from longstop.errors import BodyTruncated, FetchError, FetchTimeout, ForbiddenTarget, SourceUnreachable

#: Every error class of the library stands here, so that one it grows is noticed by a test.
MEANINGS: dict[type[CurlError], type[FetchError]] = {
    curl.Timeout: FetchTimeout,
    curl.ConnectTimeout: FetchTimeout,
    curl.ReadTimeout: FetchTimeout,
    curl.IncompleteRead: BodyTruncated,
    curl.ChunkedEncodingError: BodyTruncated,
    curl.ContentDecodingError: BodyTruncated,
    curl.TooManyRedirects: ForbiddenTarget,
    curl.InvalidURL: ForbiddenTarget,
    curl.MissingSchema: ForbiddenTarget,
    curl.URLRequired: ForbiddenTarget,
    curl.InvalidProxyURL: ForbiddenTarget,
    # The scheme has been checked long before; what is left under this name is a reply that is no HTTP.
    curl.InvalidSchema: SourceUnreachable,
    curl.ConnectionError: SourceUnreachable,
    curl.DNSError: SourceUnreachable,
    curl.SSLError: SourceUnreachable,
    curl.CertificateVerifyError: SourceUnreachable,
    curl.ProxyError: SourceUnreachable,
    curl.InterfaceError: SourceUnreachable,
    curl.HTTPError: SourceUnreachable,
    curl.SessionClosed: SourceUnreachable,
    curl.ImpersonateError: SourceUnreachable,
    curl.CookieConflict: SourceUnreachable,
    curl.InvalidHeader: SourceUnreachable,
    curl.InvalidJSONError: SourceUnreachable,
    curl.JSONDecodeError: SourceUnreachable,
    curl.StreamConsumedError: SourceUnreachable,
    curl.RetryError: SourceUnreachable,
    curl.UnrewindableBodyError: SourceUnreachable,
    curl.RequestException: SourceUnreachable,
    CurlError: SourceUnreachable,
}
#: Codes that the library files under a class that says less than the code does.
MEANINGS_BY_CODE: dict[int, type[FetchError]] = {CurlECode.BAD_CONTENT_ENCODING: BodyTruncated}

_CURLS_OWN_WORDS = re.compile(r"curl: \(\d+\) (.*?)\.? See https://", re.DOTALL)


def translated(error: CurlError) -> FetchError:
    """Return our error for one of curl's, in curl's words without the library's advice around them."""
    meaning = MEANINGS_BY_CODE.get(error.code) or MEANINGS[_known_class(error)]
    found = _CURLS_OWN_WORDS.search(str(error))
    return meaning(f"{found[1] if found else error} (curl {int(error.code)})")


def _known_class(error: CurlError) -> type[CurlError]:
    return next(kind for kind in type(error).__mro__ if kind in MEANINGS)
