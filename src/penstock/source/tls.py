"""How a connection to a source is encrypted, and whom it trusts."""

import ssl

from penstock.config import SourceSettings
from penstock.errors import AuthenticationError, ConfigurationError, PenstockError

_NO_TLS = 2026
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"


def tls_options(settings: SourceSettings) -> ssl.SSLContext | None:
    """Return the TLS settings of a connection; None uses what the server offers."""
    if settings.tls in {"disabled", "preferred"}:
        return None
    try:
        context = (
            trust_all_context() if settings.tls == "required" else ssl.create_default_context(cafile=settings.tls_ca)
        )
        if settings.tls_cert is not None:
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:
        files = ", ".join(str(file) for file in (settings.tls_ca, settings.tls_cert, settings.tls_key) if file)
        raise ConfigurationError(f"{files}: no certificates can be read there: {error}") from None
    # Certificates that MySQL makes by itself are not as strict as the newest rules.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = settings.tls == "verify-identity"
    return context


def trust_all_context() -> ssl.SSLContext:
    """Return a TLS context that trusts every certificate: the system's certificates need not be read, which takes
    longer than connecting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def translate_tls_error(code: int, text: str, settings: SourceSettings) -> PenstockError | None:
    """Return the error to raise for an error of PyMySQL that is about TLS, else None."""
    if _UNTRUSTED in text:
        reason = text.partition(_UNTRUSTED)[2].partition("(_ssl")[0].strip(" :]")
        return AuthenticationError(
            f"{settings.address} is not trusted, with tls: {settings.tls} ({reason}): name with tls_ca what vouches for"
            " its certificate, or be less strict"
        )
    if code == _NO_TLS:
        return ConfigurationError(
            f"{settings.address} speaks no TLS, and tls: {settings.tls} wants it: turn it on there, or say preferred"
        )
    return None
