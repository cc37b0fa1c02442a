"""Which of the languages that are served a text is in."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from nmt.serve.fields import BadRequest
from nmt.serve.served import ServedEngines

DETECTED = 1000  # characters of a text that are looked at


class LanguageDetector:
    """Compares how well a text fits the engines. One thread does it for all requests, a text of each in turn,
    so that translations go on beside it."""

    def __init__(self, engines: ServedEngines) -> None:
        self.engines, self.thread = engines, ThreadPoolExecutor(1, "detect")

    async def candidates(self, text: str) -> list[tuple[str, float]]:
        """The languages that a text may be in, the likeliest first, each with the share of it that is known
        words, in percent. BadRequest where no engine says its languages."""
        fits = await asyncio.get_running_loop().run_in_executor(self.thread, self.fits, text)
        if not fits:
            raise BadRequest("no engine of this server says its languages")
        ordered = sorted(fits, key=lambda language: -fits[language])
        likely = [language for language in ordered if fits[language] > 0] or ordered[:1]
        return [(language, round(100 * fits[language], 1)) for language in likely]

    def fits(self, text: str) -> dict[str, float]:
        """How well a text fits each source language: as the engine says that it fits best."""
        line, fits = text[:DETECTED].replace("\n", " "), dict[str, float]()
        for served in self.engines.values():
            source, target = served.languages
            if source and target:
                fits[source] = max(served.engine.fit(line), fits.get(source, 0.0))
        return fits
