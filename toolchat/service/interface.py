"""What ``from toolchat.service import …`` offers to applications, and to routes in tool folders."""

from toolchat.service.api.conversation_state import ConversationState
from toolchat.service.api.dependencies import IdempotencyKey, Owner, Tenant, require_same_site
from toolchat.service.api.fast_router import QuestionParameter, question_routes
from toolchat.service.api.idempotency import IdempotencyStore, IdempotentRequest
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.answers import answer, answer_once, answer_prompt
from toolchat.service.api.service import Service
from toolchat.service.api.sessions import SessionParameters, SessionPath, answer_in_session, conversation_of
from toolchat.service.main import create_app
from toolchat.service.settings.service_settings import Settings

__all__ = [
    "ConversationState",
    "IdempotencyKey",
    "IdempotencyStore",
    "IdempotentRequest",
    "Owner",
    "QuestionParameter",
    "Service",
    "SessionParameters",
    "SessionPath",
    "Settings",
    "Tenant",
    "answer",
    "answer_in_session",
    "answer_once",
    "answer_prompt",
    "conversation_of",
    "create_app",
    "problems",
    "question_routes",
    "require_same_site",
]
