"""A provider's error is told by its code and status, and nothing of its text is shown."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from toolchat.errors import (
    ContentFiltered,
    ContextTooLong,
    NotConfigured,
    ProviderAuth,
    ProviderQuota,
    ProviderRateLimited,
    ToolchatError,
    UpstreamInvalid,
    UpstreamUnavailable,
)
from toolchat.models.provider_errors import provider_error, retry_after_from

FREE = "Free allocated quota exceeded."
TOKENS = "Allocated quota exceeded, please increase your quota limit."
PLAN = "You exceeded your current quota, please check your plan and billing details."


def error_of(status: int, code: str = "", message: str = "", retry_after: float | None = None) -> ToolchatError:
    return provider_error(
        status=status,
        code=code,
        message=message,
        retry_after=retry_after,
        variables="OPENAI",
    )


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, "context_length_exceeded", "", ContextTooLong),
        (400, "", "This model's maximum context length is 8192 tokens.", ContextTooLong),
        (400, "InvalidParameter", "Range of input length should be [1, 30720]", ContextTooLong),
        (413, "BadRequest.TooLarge", "", ContextTooLong),
        (413, "", "", ContextTooLong),
        (400, "DataInspectionFailed", "", ContentFiltered),
        (400, "data_inspection_failed", "", ContentFiltered),
        (400, "content_filter", "", ContentFiltered),
        (401, "InvalidApiKey", "", ProviderAuth),
        (401, "invalid_api_key", "", ProviderAuth),
        (401, "invalid_request_error", "You didn't provide an API key.", ProviderAuth),
        (401, "", "", ProviderAuth),
        (402, "", "Insufficient Balance", ProviderQuota),
        (402, "", "", ProviderQuota),
        (403, "30001", "Sorry, your account balance is insufficient", ProviderQuota),
        (400, "invalid_request_error", "Your credit balance is too low.", ProviderQuota),
        (403, "AccountOverdueError", "", ProviderQuota),
        (429, "exceeded_current_quota_error", "", ProviderQuota),
        (400, "billing_hard_limit_reached", "", ProviderQuota),
        (403, "account_deactivated", "", ProviderAuth),
        (403, "Model.AccessDenied", "", ProviderAuth),
        (403, "AllocationQuota.FreeTierOnly", "", ProviderQuota),
        (400, "Arrearage", "", ProviderQuota),
        (429, "CommodityNotPurchased", "", ProviderQuota),
        (429, "PrepaidBillOverdue", "", ProviderQuota),
        (429, "PostpaidBillOverdue", "", ProviderQuota),
        (429, "insufficient_quota", PLAN, ProviderQuota),
        (429, "insufficient_quota", TOKENS, ProviderRateLimited),
        (429, "insufficient_quota", FREE, ProviderQuota),
        (429, "Throttling.AllocationQuota", TOKENS, ProviderRateLimited),
        (429, "Throttling.AllocationQuota", FREE, ProviderQuota),
        (400, "Throttling.AllocationQuota", TOKENS, ProviderRateLimited),
        (429, "Throttling", "", ProviderRateLimited),
        (429, "Throttling.RateQuota", "", ProviderRateLimited),
        (429, "Throttling.BurstRate", "", ProviderRateLimited),
        (429, "limit_requests", "", ProviderRateLimited),
        (429, "limit_burst_rate", "", ProviderRateLimited),
        (429, "rate_limit_exceeded", "", ProviderRateLimited),
        (200, "1002", "", ProviderRateLimited),
        (429, "", "", ProviderRateLimited),
        (404, "model_not_found", "", NotConfigured),
        (404, "Model.NotExist", "", NotConfigured),
        (400, "model_not_supported", "", NotConfigured),
        (400, "InvalidParameter", "url error, please check url！", NotConfigured),
        (404, "", "", NotConfigured),
        (500, "InternalError", "", UpstreamUnavailable),
        (400, "InternalError.Algo", "Expecting ',' delimiter", UpstreamUnavailable),
        (500, "RequestTimeOut", "", UpstreamUnavailable),
        (400, "ResponseTimeout", "", UpstreamUnavailable),
        (503, "ModelUnavailable", "", UpstreamUnavailable),
        (529, "overloaded_error", "", UpstreamUnavailable),
        (408, "", "", UpstreamUnavailable),
        (502, "", "<html>", UpstreamUnavailable),
        (200, "", "something broke", UpstreamUnavailable),
        (200, "server_error", "", UpstreamUnavailable),
        (200, "1008", "insufficient balance", ProviderQuota),
        (400, "InternalError.Algo.InvalidParameter", "Repetitive tool calls", UpstreamInvalid),
        (200, "invalid_request_error", "", UpstreamInvalid),
        (422, "", "", UpstreamInvalid),
        (409, "conflict", "", UpstreamInvalid),
    ],
)
def test_each_code_and_status_has_its_meaning(status: int, code: str, message: str, kind: type[ToolchatError]) -> None:
    error = error_of(status, code, message)
    assert type(error) is kind
    assert message == "" or message not in error.detail


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("InvalidParameter", "the provider refused the request (code InvalidParameter)"),
        ("", "the provider refused the request (status 400)"),
        ("sk-key with blanks", "the provider refused the request (status 400)"),
        ("sk-canary-1234", "the provider refused the request (status 400)"),
        ("x" * 65, "the provider refused the request (status 400)"),
        ("<b>\n", "the provider refused the request (status 400)"),
    ],
)
def test_only_a_code_that_is_a_known_word_is_shown(code: str, detail: str) -> None:
    assert error_of(400, code).detail == detail


@pytest.mark.parametrize(
    ("status", "code", "message", "remedy"),
    [
        (404, "model_not_found", "", "set OPENAI_MODEL"),
        (404, "not_found_error", "model 'm' not found, try pulling it first", "set OPENAI_MODEL"),
        (400, "InvalidParameter", "url error, please check url", "set OPENAI_MODEL or OPENAI_ENDPOINT"),
        (404, "", "", "check OPENAI_BASE_URL"),
        (404, "", "Invalid URL (POST /v1/v1/chat/completions)", "check OPENAI_BASE_URL"),
        (401, "", "", "check OPENAI_API_KEY"),
    ],
)
def test_what_the_operator_can_set_right_names_the_variable(status: int, code: str, message: str, remedy: str) -> None:
    assert error_of(status, code, message).detail.endswith(remedy)


@pytest.mark.parametrize(
    ("status", "code", "logged"),
    [
        (429, "Throttling.AllocationQuota", {"upstream_status": 429, "provider_code": "Throttling.AllocationQuota"}),
        (200, "1008", {"upstream_status": 200, "provider_code": "1008"}),
        (401, "sk-canary-1234", {"upstream_status": 401}),
    ],
)
def test_the_log_has_the_status_and_a_known_code(status: int, code: str, logged: dict[str, object]) -> None:
    assert error_of(status, code).log_fields == logged


@pytest.mark.parametrize(
    ("status", "given", "passed"), [(429, 2.0, 2.0), (503, 7.0, 7.0), (429, 900.0, 60.0), (429, None, None)]
)
def test_the_wait_is_passed_on_and_bounded(status: int, given: float | None, passed: float | None) -> None:
    assert error_of(status, retry_after=given).retry_after == passed


def test_no_wait_is_passed_on_where_waiting_does_not_help() -> None:
    assert error_of(401, retry_after=5).retry_after is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3600"}, 60),
        ({"retry-after": "-4"}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 -0000"}, 60),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Wed, 99 Oct 2099 99:99:99 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_from(headers) == seconds


def test_retry_after_as_a_date_counts_from_now() -> None:
    now = datetime.now(UTC)
    seconds = retry_after_from({"retry-after": format_datetime(now + timedelta(seconds=30), usegmt=True)})
    passed = (datetime.now(UTC) - now).total_seconds()
    assert seconds is not None
    assert 29 - passed < seconds <= 30  # a date has whole seconds
