"""What a process that we start gets of our environment: what it needs, by name, and nothing else.

Ours may hold the key of a model's provider, a database's password or a CI's token. A warden outlives us, SkyPilot's
server serves others, and pip, ssh and rsync start programs of their own; each would carry them on.
"""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

PROXIES = tuple(
    written
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
    for written in (name, name.upper())
)
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")

# Where things are, whose they are, and how they are written. Every process gets these.
BASIC = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "XDG_*", "LANG", "LANGUAGE", "LC_*", "TZ"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "LD_LIBRARY_PATH"),
)
DOCKER = ("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
MODAL = ("MODAL_*", *PROXIES, *CERTIFICATES)
PIP = ("PIP_*", "NETRC", *PROXIES, *CERTIFICATES)
# Its own, and those by which the clouds that we rent from know an account. Whole families are not allowed: keys of
# models are named AWS_BEARER_TOKEN_BEDROCK and GOOGLE_API_KEY.
SKYPILOT = (
    *("SKYPILOT_*", "SKY_*", "SLURM_CONF", "SSH_AUTH_SOCK", "PIP_*", "UV_*", "CLOUDSDK_*"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"),
    *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"),
    *("AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_*"),
    *("AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"),
    *PROXIES,
    *CERTIFICATES,
)


def child_environment(needs: Iterable[str] = (), **more: str) -> dict[str, str]:
    """The basic variables, those that `needs` names (`*` stands for the rest of a name), and `more`."""
    patterns = (*BASIC, *needs)
    return {name: value for name, value in os.environ.items() if _is_named(name, patterns)} | more


def without_inherited(environment: Mapping[str, str], needs: Iterable[str]) -> dict[str, str]:
    """For one that another package made of ours: what it added or changed stays, of the rest what is needed."""
    patterns = (*BASIC, *needs)
    return {
        name: value for name, value in environment.items() if _is_named(name, patterns) or os.environ.get(name) != value
    }


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
