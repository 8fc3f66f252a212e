"""A web service that puts what it is sent into an encrypted topic, and answers when the broker has it.

    CIPHERLANE_CONFIG=producer.json CLAIMS_TOPIC=claims uvicorn --app-dir service app:application

What cannot be encrypted is not sent: the client hears 503 if trying again later makes sense, else 500.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from cipherlane import EncryptionError
from cipherlane.confluent.aio import AIOProducer
from confluent_kafka import KafkaException
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field

HTTP_INTERNAL_ERROR = 500
HTTP_UNAVAILABLE = 503


class Visit(BaseModel):
    """A visit to a doctor."""

    person: int = Field(ge=0)
    reason: str = Field(min_length=1, max_length=1000)


class Stored(BaseModel):
    """Where a visit lies."""

    partition: int
    offset: int


@contextlib.asynccontextmanager
async def lifespan(service: FastAPI) -> AsyncIterator[None]:
    """One producer for the life of the service: made after the server forked its workers, closed when it stops."""
    settings = json.loads(Path(os.environ["CIPHERLANE_CONFIG"]).read_text())
    producer = AIOProducer(settings, batch_size=1)  # a request waits for its own record: nothing to collect
    service.state.producer = producer
    try:
        yield
    finally:
        await producer.close()


application = FastAPI(title="Visits", lifespan=lifespan)


@application.post("/visits", status_code=201)
async def add_visit(visit: Visit, request: Request) -> Stored:
    """Puts a visit into the topic."""
    producer: AIOProducer = request.app.state.producer
    try:
        sent = await producer.produce(os.environ["CLAIMS_TOPIC"], visit.model_dump_json(), str(visit.person))
        await producer.flush()
        message = await sent
    except EncryptionError as error:
        status = HTTP_UNAVAILABLE if error.retriable else HTTP_INTERNAL_ERROR
        raise HTTPException(status, f"the visit was not stored: {error.code}") from None
    except KafkaException:
        raise HTTPException(HTTP_UNAVAILABLE, "the visit was not stored: the broker did not take it") from None
    return Stored(partition=message.partition(), offset=message.offset())
