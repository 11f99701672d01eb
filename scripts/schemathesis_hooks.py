"""Keeps the known server alive: sequences of requests find it in lists, and one of them deletes what it found."""

import os
import uuid

import schemathesis

KNOWN = os.environ["TEST_SERVER_ID"]


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.method.upper() == "DELETE" and case.path_parameters.get("id") == KNOWN:
        case.path_parameters["id"] = str(uuid.UUID(int=0))
