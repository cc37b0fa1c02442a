"""The student of a build: its time, how long it is trained, and what must stay the same."""

import json
import os
import socket
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt.errors import ConfigError
from nmt.io import files
from nmt.training.cost import Cost
from smt_bridge.build import distillation, student
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.distillation import StudentPlan
from smt_bridge.build.plan import CorpusSizes
from smt_bridge.build.student import StudentTask, StudentTraining, training_length
from smt_bridge.build.training import LOGS
from tests.smt_bridge.build.builds import small_plan


def build(folder: Path, **given: object) -> Build:
    config = BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(folder / "system"), student=True)
    return Build(replace(config, **given), small_plan("joint"))  # type: ignore[arg-type]


# ---- how long it is trained --------------------------------------------------------------------------------


COST = Cost("cpu", 1000, 10, 5000, 20.0, 3.0, epoch_updates=8, epoch_units=4000, validate_every=0, epochs=0)


def test_the_training_takes_the_time_that_there_is() -> None:
    """An update takes two seconds here, a validation three."""
    plan = training_length(COST, 1060, most=1000)
    assert plan.updates == 500 and plan.every == 25 and plan.warmup == 100 and plan.epochs == 62.5
    assert plan.seconds == 1060
    assert training_length(COST, 1060, most=10) == StudentTraining(80, 4, 16, 10.0, 220.0)
    assert training_length(COST, -5, most=10).updates == student.LEAST  # there is always a student


def test_the_minutes_are_shared_between_the_steps(tmp_path: Path) -> None:
    made = build(tmp_path)
    made.plan = replace(made.plan, sizes=CorpusSizes(29_000, 400_000, 420_000, 1000, 13_000))
    seconds = dict[str, float]()
    for minutes in (20.0, 60.0):
        made.config.student_minutes = minutes
        seconds = student.planned_seconds(made)
        assert list(seconds) == [*(step.name for step in student.STEPS), "student-package"]
        assert sum(seconds.values()) == pytest.approx(60 * minutes, abs=2)
    made.config.student_minutes = 0.1
    assert student.planned_seconds(made)["student"] == student.MEASURED
    few = replace(made, plan=replace(made.plan, sizes=CorpusSizes(290, 4000, 4200, 1000, 13_000)))
    assert student.planned_seconds(few)["student-text"] < seconds["student-text"] / 10
    made.config.student = False
    assert not student.planned_seconds(made) and not list(student.plan_lines(made))


def test_what_is_decided_is_shown(tmp_path: Path) -> None:
    made = build(tmp_path)
    assert any("all lines for which there is time" in line for line in student.plan_lines(made))
    plan = StudentPlan(1000, 50, translated=900, translated_monolingual=0, stack=10, seconds=77.0)
    files.write_text(made.work / distillation.PLAN, [json.dumps(asdict(plan))])
    training = StudentTraining(1234, 60, 200, 5.5, 99.0)
    files.write_text(made.work / student.TRAINING, [json.dumps(asdict(training))])
    assert distillation.read_plan(made) == plan and student.read_training(made.work) == training
    shown = "\n".join(student.plan_lines(made))
    assert "900 of 1,000 pairs are translated, the others have their reference; 0 of 50 mono" in shown
    assert "1,234 updates, 5.5 epochs" in shown and "besides the budget" in shown
    seconds = student.planned_seconds(made)
    assert seconds["student-text"] == round(77 + distillation.tables_seconds(made.plan))
    assert seconds["student"] == 99


def test_the_processes_of_a_training_find_each_other() -> None:
    """Over the loopback interface, and without torchrun, which may restart them."""
    with socket.create_server(("127.0.0.1", student.free_port())) as server:  # it is free
        port = server.getsockname()[1]
    tasks = [StudentTask({}, 1.0, 1.0, 1.0, port, rank) for rank in range(student.PROCESSES)]
    variables = [student.team_environment(task) for task in tasks]
    assert [row["RANK"] for row in variables] == [row["LOCAL_RANK"] for row in variables] == ["0", "1"]
    for row in variables:
        assert (row["WORLD_SIZE"], row["MASTER_ADDR"], row["MASTER_PORT"]) == ("2", "127.0.0.1", str(port))
        assert row.get("GLOO_SOCKET_IFNAME", "lo") in student.LOOPBACK
        assert not any(name.startswith("TORCHELASTIC") for name in row)


def test_the_first_process_decides_and_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update takes one process two seconds here, both of them one. The others only train with it."""
    made, exports, trained = build(tmp_path), list[str](), list[dict[str, str]]()
    monkeypatch.chdir(tmp_path)
    for name in (distillation.FOLDER, LOGS):
        Path(name).mkdir()
    monkeypatch.setattr(
        "smt_bridge.build.student.inspect_pairs", lambda source, target: SimpleNamespace(sides=())
    )
    monkeypatch.setattr("nmt.training.cost.measure", lambda *given: COST)
    monkeypatch.setattr("os.environ", dict(os.environ))
    monkeypatch.setattr(
        "smt_bridge.build.student.run_training", lambda config: trained.append(dict(os.environ))
    )
    monkeypatch.setattr("nmt.runs.checkpoint.write_average", lambda *given: exports.append("copy"))
    monkeypatch.setattr(
        student, "EXPORT", SimpleNamespace(load=lambda: lambda *given: exports.append("made"))
    )
    content = student.training_content(made, 29_000)
    training = content["training"]
    assert isinstance(training, dict) and training["update_batches"] == student.PROCESSES
    assert training["batch_size"] * student.PROCESSES == student.recipe(29_000).batch
    tasks = [StudentTask(content, 1060, 1000, 1.0, 1, rank) for rank in (1, 0)]
    student.plan_training(tasks[0])
    assert student.read_training(Path()) is None
    student.plan_training(tasks[1])
    assert student.read_training(Path()) == training_length(replace(COST, seconds=10.0), 1060, 1000)
    student.train_student(tasks[0])
    assert not exports
    monkeypatch.setattr("nmt.runs.directory.find_step", lambda run, which: run)
    student.train_student(tasks[1])
    assert len(exports) == 1 and [row["RANK"] for row in trained] == ["1", "0"]


# ---- settings ----------------------------------------------------------------------------------------------


def test_other_settings_of_a_student_are_refused(tmp_path: Path) -> None:
    made = build(tmp_path)
    made.work.mkdir(parents=True)
    student.open_folder(made)
    student.open_folder(made)
    text = tmp_path / "mono.en"
    text.write_text("A line.\n")
    for name, value in (
        ("student_minutes", 3.0),
        ("student_references", True),
        ("monolingual_source", str(text)),
    ):
        with pytest.raises(ConfigError, match=f"student: was started with another {name}; name the same"):
            student.open_folder(Build(replace(made.config, **{name: value}), made.plan))  # type: ignore[arg-type]


def test_the_larger_a_text_the_larger_its_batches_and_vocabulary() -> None:
    """And the fewer its epochs. Each process has the same share of a batch."""
    recipes = [student.recipe(pairs) for pairs in (0, 5000, 29_000)]
    assert recipes == sorted(recipes, key=lambda row: row.batch)
    assert recipes == sorted(recipes, key=lambda row: row.merges)
    assert recipes == sorted(recipes, key=lambda row: -row.most)
    assert len({*recipes}) == 3 and all(row.batch % student.PROCESSES == 0 for row in recipes)
