"""Questions to other members: an answer counts once, and only from the member that was asked."""

import asyncio

from skerry.member.questions import Questions


def test_only_the_member_that_was_asked_answers() -> None:
    async def run() -> None:
        questions = Questions[str]()
        request_id, answer = questions.put("oslo")
        questions.answered("bergen", request_id, "a lie")
        assert not answer.done()
        questions.answered("oslo", request_id, "yes")
        questions.answered("oslo", request_id, "again")
        assert await answer == "yes"

    asyncio.run(run())


def test_a_member_that_is_lost_owes_what_it_has_not_answered() -> None:
    async def run() -> None:
        questions = Questions[str]()
        answered, first = questions.put("oslo")
        _, second = questions.put("oslo")
        _, other = questions.put("bergen")
        questions.answered("oslo", answered, "yes")
        assert questions.open_at("oslo") == [second]
        assert questions.open_at("bergen") == [other]
        assert first.result() == "yes"

    asyncio.run(run())


def test_an_answer_to_a_question_that_is_forgotten_reaches_nobody() -> None:
    async def run() -> None:
        questions = Questions[str]()
        request_id, answer = questions.put("oslo")
        questions.forget([request_id, "never asked"])
        questions.answered("oslo", request_id, "late")
        await asyncio.sleep(0)
        assert not answer.done()

    asyncio.run(run())
