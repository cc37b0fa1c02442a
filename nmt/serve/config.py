"""The settings of the server, which are the options of nmt-serve; importing them does not import torch."""

from dataclasses import dataclass

from nmt.config.settings import choice, number, setting
from nmt.runs.exported import QUANTIZATIONS
from nmt.search.config import BEAM_SIZE

TORCH, CTRANSLATE2, AUTO = "torch", "ctranslate2", "auto"  # what computes runs


@dataclass
class EngineConfig:
    """How the engines of the server compute."""

    device: str = setting(
        "cpu", help="device of networks: cpu, cuda, cuda:1 ..., auto (a GPU if there is one)"
    )
    engine: str = choice(
        TORCH,
        CTRANSLATE2,
        AUTO,
        help="what computes runs of nmt-train: ctranslate2 is faster; the server exports each run once, into "
        "the cache; requests then cannot have terms (a glossary); auto: ctranslate2 for the Transformers "
        "that it can compute",
    )
    quantization: str = choice(
        *QUANTIZATIONS,
        help="precision of the weights of the runs that the server exports; int8 is the fastest",
    )
    beam_size: int = number(
        BEAM_SIZE,
        least=1,
        most=1000,
        help="hypotheses that a network keeps at each word, unless a request sets beam_size",
    )
    threads: int = number(0, least=0, most=1000, help="CPU threads of an exported run; 0: up to four")
    workers: int = number(
        2, least=1, most=1000, help="sentences that a phrase-based engine translates at a time, in threads"
    )
    cache: str = setting(
        "", help="where tables, LMs and exports are kept, ready to load; default: see smt-cache"
    )


@dataclass
class ServeConfig:
    """Where the server listens, and the limits of requests."""

    host: str = setting(
        "127.0.0.1", help="address to listen on; an address that is not a loopback address needs --token"
    )
    token: str = setting(
        "", help="file with the secret that clients must send; needed unless --host is a loopback address"
    )
    port: int = number(8080, least=0, most=65535, help="port to listen on; 0: any free one")
    allow_origin: list[str] = setting(
        [],
        help="sites, such as https://example.org, whose pages may use the server (CORS); default: none",
    )
    proxy: list[str] = setting(
        [], help="addresses of proxies, whose header X-Forwarded-For says who the client is; none by default"
    )
    max_connections: int = number(
        100,
        least=1,
        most=100_000,
        help="most simultaneous connections of a client (an address); proxies have no limit",
    )
    max_request: int = number(
        1 << 20, least=1000, most=1 << 30, help="most bytes of a request's body; larger ones are refused"
    )
    max_file: int = number(
        10 << 20, least=1000, most=1 << 30, help="most bytes of a document; larger ones are refused"
    )
    keep_files: float = number(
        1800.0, above=0, most=86_400, help="seconds for which a translated document can be downloaded"
    )
    max_lines: int = number(500, least=1, most=100_000, help="most lines of a request")
    max_line: int = number(5000, least=1, most=1_000_000, help="most characters of a line")
    max_terms: int = number(
        10_000,
        least=1,
        most=10_000_000,
        help="most characters of the terms and the phrases to avoid of a request",
    )
    max_n_best: int = number(100, least=1, most=10_000, help="most hypotheses that a request may ask for")
    max_beam_size: int = number(50, least=1, most=1000, help="largest beam size that a request may ask for")
    queue: int = number(
        1000,
        least=1,
        most=1_000_000,
        help="most lines that may wait for an engine; more are refused with 429",
    )
    gather: float = number(
        0.005, least=0, most=10, help="seconds that an idle engine waits for more lines to search together"
    )
    timeout: float = number(
        60.0, above=0, most=86_400, help="seconds in which a request must be answered, and the answer read"
    )
    read_timeout: float = number(
        10.0, above=0, most=3600, help="seconds in which the head of a request must arrive, and then its body"
    )
