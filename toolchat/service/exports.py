"""The public names of the service, for applications and for routes in tool folders."""

from toolchat.service.api.advisors import ConversationState as ConversationState
from toolchat.service.api.dependencies import (
    IdempotencyKey as IdempotencyKey,
    Owner as Owner,
    Tenant as Tenant,
    belonging_to as belonging_to,
    require_same_site as require_same_site,
)
from toolchat.service.api.fast_router import QuestionParameter as QuestionParameter, question_routes as question_routes
from toolchat.service.api.idempotency import (
    IdempotencyStore as IdempotencyStore,
    IdempotentRequest as IdempotentRequest,
)
from toolchat.service.api.problems import problems as problems
from toolchat.service.api.responses.answers import (
    answer as answer,
    answer_once as answer_once,
    answer_prompt as answer_prompt,
)
from toolchat.service.api.service import Service as Service
from toolchat.service.api.sessions import (
    SessionParameters as SessionParameters,
    SessionPath as SessionPath,
    answer_in_session as answer_in_session,
    conversation_of as conversation_of,
)
from toolchat.service.main import create_app as create_app
from toolchat.service.observability.logs import configure_logging as configure_logging
from toolchat.service.settings.service_settings import Settings as Settings
