"""scripts/setup installs by uv from wherever the caller's pip would."""

from __future__ import annotations

from scripts.uv_settings import ALWAYS, uv_settings


def test_pip_settings_become_uvs() -> None:
    listed = "\n".join(
        [
            "global.index-url='https://mirror.example/simple'",
            r"global.extra-index-url='\nhttps://one.example/simple\nhttps://two.example/simple'",
            "global.trusted-host='mirror.example other.example'",
            "install.find-links='/wheels /more'",
            "global.cert='/etc/ca.pem'",
            ":env:.default-timeout='180'",
            ":env:.user='0'",
        ]
    )
    assert uv_settings(listed, {}) == ALWAYS | {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_EXTRA_INDEX_URL": "https://one.example/simple https://two.example/simple",
        "UV_INSECURE_HOST": "mirror.example other.example",
        "UV_FIND_LINKS": "/wheels,/more",
        "SSL_CERT_FILE": "/etc/ca.pem",
        "UV_HTTP_TIMEOUT": "180",
    }


def test_a_variable_counts_more_than_a_command_and_that_more_than_all_commands() -> None:
    listed = "install.retries='2'\n:env:.retries='3'\nglobal.retries='1'"
    assert uv_settings(listed, {})["UV_HTTP_RETRIES"] == "3"
    assert uv_settings(listed.replace(":env:", "freeze"), {})["UV_HTTP_RETRIES"] == "2"


def test_what_the_caller_says_to_uv_stays() -> None:
    assert "UV_DEFAULT_INDEX" not in uv_settings("global.index-url='https://a.example'", {"UV_DEFAULT_INDEX": "b"})


def test_certificates_of_requests_are_used_unless_pip_has_its_own() -> None:
    environ = {"REQUESTS_CA_BUNDLE": "/requests.pem", "SSL_CERT_FILE": "/another.pem"}
    assert uv_settings("", environ)["SSL_CERT_FILE"] == "/requests.pem"
    assert uv_settings("global.cert='/pip.pem'", environ)["SSL_CERT_FILE"] == "/pip.pem"
