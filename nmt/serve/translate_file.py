"""Translation of documents: /translate_file and /download_file of LibreTranslate's interface.

Translated documents are kept in memory only: until they are too old or too many, at most until the server
stops. Their names cannot be guessed.
"""

import asyncio
import os
import re
import secrets
from dataclasses import dataclass
from functools import partial

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nmt.documents import formats
from nmt.documents.formats import FORMATS
from nmt.errors import ConfigError
from nmt.serve import http_api
from nmt.serve.engine import TranslateOptions
from nmt.serve.http_api import BadRequest, Endpoint, Fields, optional_schema
from nmt.serve.libretranslate import (
    AUTO,
    MULTIPART,
    TEXT_ERRORS,
    LibreTranslate,
    best_aligned,
    required_text,
)
from nmt.serve.limits import FILE_PATH

MOST_KEPT = 10  # documents of the largest size, together
LONGEST_STEM = 80  # characters of a name before its ending
UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class KeptFile:
    """A translated document, and how it is sent."""

    data: bytes
    media_type: str
    name: str  # under which a browser saves it


class FileStore:
    """Translated documents by names that cannot be guessed. Only the thread of the event loop uses it."""

    def __init__(self, most: int, seconds: float) -> None:
        """`most`: bytes of all documents, beyond which the oldest go; `seconds`: how long each is kept."""
        self.most, self.seconds = most, seconds
        self.files = dict[str, KeptFile]()

    def keep(self, file: KeptFile) -> str:
        """Keep a document; returns the name to ask for it."""
        key = f"{secrets.token_urlsafe(16)}.{file.name}"
        self.files[key] = file
        while sum(len(file.data) for file in self.files.values()) > self.most and len(self.files) > 1:
            del self.files[next(iter(self.files))]
        asyncio.get_running_loop().call_later(self.seconds, self.files.pop, key, None)
        return key


class TranslateFile:
    """The handlers of documents, which are translated and then downloaded."""

    def __init__(self, texts: LibreTranslate) -> None:
        """`texts`: the handlers of texts, whose engines and limits also hold for documents."""
        self.texts, self.config, self.access = texts, texts.config, texts.access
        self.store = FileStore(MOST_KEPT * self.config.max_file, self.config.keep_files)

    def endpoints(self) -> list[Endpoint]:
        languages = self.texts.engines.languages
        code: http_api.Schema = {"type": "string", "enum": list(languages)}
        return [
            Endpoint(
                path=FILE_PATH,
                handler=self.translate,
                summary="Translate a document",
                request=http_api.object_schema(
                    ["file", "source", "target"],
                    file={"type": "string", "format": "binary", "description": ", ".join(formats.endings())},
                    source={"type": "string", "enum": [AUTO, *languages]},
                    target=code,
                    engine=optional_schema(
                        {**http_api.TEXT, "description": "its name, instead of the languages"}
                    ),
                    api_key=optional_schema({**http_api.TEXT, "description": "the token"}),
                ),
                multipart=True,
                answer=http_api.record_schema(translatedFileUrl=http_api.TEXT),
                errors=TEXT_ERRORS,
            )
        ]

    def routes(self) -> list[Route]:
        return [Route("/download_file/{name:path}", self.download, methods=["GET"])]

    async def translate(self, request: Request) -> Response:
        if http_api.media_type(request) != MULTIPART:
            raise BadRequest("Invalid request: missing file parameter")
        http_api.check_charset(request)
        async with request.form(
            max_files=1, max_fields=http_api.MAX_FIELDS, max_part_size=self.config.max_request
        ) as form:
            values = {name: value for name, value in form.items() if isinstance(value, str)}
            fields, upload = Fields(values, lenient=True), form.get("file")
            self.texts.check_key(request, fields)
            if not isinstance(upload, UploadFile) or not upload.filename:
                raise BadRequest("Invalid request: missing file parameter")
            name, data = safe_name(upload.filename), await upload.read()
        file = await self.translate_data(request, fields, name, data)
        return JSONResponse({"translatedFileUrl": f"{request.base_url}download_file/{self.store.keep(file)}"})

    async def translate_data(self, request: Request, fields: Fields, name: str, data: bytes) -> KeptFile:
        """Translate a document. `name`: safe name of its file. BadRequest for an unknown format and for
        languages without an engine, DataError for a damaged document; other errors as from
        `EngineAccess.translate`."""
        source, target = required_text(fields, "source"), required_text(fields, "target")
        try:
            format_name = formats.choose_format(name)
        except ConfigError as error:
            raise BadRequest("Invalid request: file format not supported") from error
        self.texts.check_languages(source, target)
        parse = partial(formats.parse, data, name, format_name)
        document = await self.access.run_text_work(request, len(data), parse)
        if source == AUTO:
            text = self.texts.detector.candidates(" ".join(document.lines))
            source = (await self.access.answer(request, text))[0][0]
        engine = fields.text("engine", "")
        if engine and engine not in self.texts.engines:
            raise BadRequest(f"engine: {engine} is not one of {', '.join(self.texts.engines)}")
        served = self.texts.engines[engine] if engine else self.texts.find_engine(source, target)
        document.set_languages(source, target)
        lines = await self.texts.translate_sentences(request, served, document.lines, TranslateOptions())
        write = partial(document.write, list(map(best_aligned, lines)))
        translated = await self.access.run_text_work(request, len(data), write)
        return KeptFile(translated, FORMATS[format_name].media_type, translated_name(name, target))

    async def download(self, request: Request) -> Response:
        name = request.path_params["name"]
        if "/" in name or "\\" in name or name.startswith("."):
            raise BadRequest("Invalid filename")
        file = self.store.files.get(name)
        if file is None:
            raise HTTPException(404, "there is no such file, or no longer; translate the document again")
        disposition = f'attachment; filename="{file.name}"'
        return Response(file.data, media_type=file.media_type, headers={"Content-Disposition": disposition})


def safe_name(name: str) -> str:
    """The name of a file without folders, of ASCII letters, digits, '_' and '-', with its ending."""
    stem, ending = os.path.splitext(re.split(r"[/\\]", name)[-1])
    stem = UNSAFE.sub("_", stem)[:LONGEST_STEM].strip("_") or "document"
    ending = UNSAFE.sub("", ending)[:LONGEST_STEM]
    return f"{stem}.{ending}" if ending else stem


def translated_name(name: str, target: str) -> str:
    """The name of a translated file: report.docx -> report.fr.docx."""
    stem, ending = os.path.splitext(name)
    return f"{stem}.{UNSAFE.sub('', target)}{ending}"
