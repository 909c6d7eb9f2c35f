"""What libraries would load for nobody is left out, and is there for whoever asks for it."""

import os
import subprocess
import sys

_START = "import sys, app.server.runner; from app.main import create_app; made = create_app()\n"


def _run(script: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", _START + script], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_start_loads_no_old_models_and_builds_none_of_openapi_until_the_documentation_is_asked_for() -> None:
    _run(
        "from fastapi.openapi.models import OpenAPI\n"
        "import httpx\n"
        "assert not {'pydantic.v1', 'httpx._main'} & set(sys.modules)\n"
        "assert not OpenAPI.__pydantic_complete__\n"
        "OpenAPI(**made.openapi())\n"
        "assert OpenAPI.__pydantic_complete__\n"
        "from pydantic import BaseModel\n"
        "class Own(BaseModel): number: int\n"
        "assert Own.__pydantic_complete__\n"
    )


def test_a_route_that_takes_an_old_model_is_refused_as_ever() -> None:
    _run(
        "from pydantic.v1 import BaseModel\n"
        "from fastapi.exceptions import PydanticV1NotSupportedError\n"
        "class Old(BaseModel): number: int\n"
        "try: made.get('/old', response_model=Old)(lambda: None)\n"
        "except PydanticV1NotSupportedError: sys.exit()\n"
        "sys.exit('it was taken')\n"
    )
