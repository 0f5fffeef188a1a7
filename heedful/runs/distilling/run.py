"""The composition of a distilling run: teacher, student, texts, evaluation, and what is left at the end.

start/            the student before it learns
teacher/          answers.npy, a row a text, and axes/, which turn the teacher's vectors to the student's width
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.checkpoints.sentence_dense import read_dense
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.config import to_mapping
from heedful.data.labelled.dataset import Dataset
from heedful.inference.load import model_path
from heedful.models.encoder import encoder_of
from heedful.runs.budget import Budget, parse_budget, steps_of_budget
from heedful.runs.distilling.answers import Limits, kept_answers, read_answers
from heedful.runs.distilling.axes import AXES, axes_of, keep_axes
from heedful.runs.distilling.card import write_student_card
from heedful.runs.distilling.judge import BesideTeacher
from heedful.runs.distilling.lesson import AnswerLesson, Lesson, VectorLesson, lesson_of
from heedful.runs.distilling.plan import Plan, check_metric, plan_of, rate_of, training_of
from heedful.runs.distilling.settings import DistillingSettings
from heedful.runs.distilling.student import student_folder, teacher_share, tell_size, write_student
from heedful.runs.distilling.texts import Texts
from heedful.runs.finetuning.dev import Dev
from heedful.runs.finetuning.material import Material, described
from heedful.runs.run import Ready, Run, Stage, carry_out, processes
from heedful.tasks.distilling import Distilling, FlatItems, TaughtSource
from heedful.tasks.embed import Embed
from heedful.training.budget import TRIAL_STEPS
from heedful.training.distributed import joined

EVALUATIONS = 10
LONGEST_WAIT = 7 * 24 * 60.0  # minutes that other processes wait for the one that asks the teacher
ANSWERS = Path("teacher", "answers.npy")


def distil(settings: DistillingSettings, stage: Stage) -> Run:
    """Train as the settings say."""
    return carry_out(prepare, settings, stage)


def prepare(settings: DistillingSettings, stage: Stage) -> Ready:
    """Read the texts, ask the teacher, build the student and count the steps."""
    teacher = read_folder(model_path(settings.teacher), settings.force)
    lesson = lesson_of(settings, teacher)
    check_metric(settings.metric, lesson)
    texts = Texts.of(settings, lesson)
    for remark in texts.remarks:
        stage.note(remark)
    with joined(LONGEST_WAIT) as world:
        spent = float(world.first(lambda: _ask(settings, teacher, lesson, texts, stage)))
    answers = read_answers(stage.folder.path / ANSWERS)
    texts = texts.answered(len(answers))
    material = _material(settings, lesson, texts, stage)
    model = load_for_task(material.folder, lesson.task.model, settings.seed, note=stage.note)
    tell_size(encoder_of(model), teacher, stage.note)
    taught = _Taught(lesson, answers, axes_of(stage.folder.path))
    source = TaughtSource(
        material.train_items,
        lambda numbers: taught([texts.place(number) for number in numbers]),
        settings.batch_size,
        settings.seed,
    )
    objective = Distilling(lesson.task, lesson.loss, settings.label_weight)
    settings = replace(settings, learning_rate=rate_of(settings, encoder_of(model).width))
    plan = _plan(settings, lesson, texts, (model, objective, source), stage, spent)
    judge = _judge(lesson, texts, material, taught)
    return Ready(
        plan=plan,
        model=model,
        objective=objective,
        source=source,
        save=lambda path: _save(model, path, plan, material, lesson, judge, stage.folder.path),
        judge=judge,
        spent=spent,
    )


class _Taught:
    """What the teacher said, at the width of the student's outputs."""

    def __init__(self, lesson: Lesson, answers: NDArray[np.float32], axes: Tensor | None) -> None:
        self.lesson, self.answers, self.axes = lesson, answers, axes

    def __call__(self, places: Sequence[int]) -> Tensor:
        """Of the texts at some places, (B, K)."""
        found = torch.from_numpy(np.array(self.answers[list(places)]))
        return found if self.axes is None else nn.functional.normalize(found, dim=-1) @ self.axes


def _ask(settings: DistillingSettings, teacher: ModelFolder, lesson: Lesson, texts: Texts, stage: Stage) -> float:
    """Let one process make the student and ask the teacher; gives the seconds that the teacher took."""
    run = stage.folder.path
    stage.folder.make()
    stage.folder.keep_settings()
    begun = stage.folder.holds_run()  # from then on everything is as it was
    if settings.student is None and not begun:
        write_student(settings, teacher, run, stage.note)
    folder = student_folder(settings, run)
    what = f"texts of {settings.max_length} tokens are"
    folder.check_room(what, settings.max_length, remedy="use a lower `max_length`")
    folder.require_tokenizer()
    limits = _limits(settings, texts, teacher_share(teacher.model_config, folder.model_config))
    spent = kept_answers(run / ANSWERS, lesson, teacher, texts.asked, limits, stage.note)
    if isinstance(lesson, VectorLesson) and not begun:
        keep_axes(run, read_answers(run / ANSWERS), folder.model_config.width, stage.note)
    return spent


def _limits(settings: DistillingSettings, texts: Texts, share: float) -> Limits:
    """What a budget allows the teacher: its share of a time, or as many texts as the steps will read."""
    budget = parse_budget(settings.budget) if settings.budget else Budget()
    most = texts.first + max(1, round(budget.steps)) * settings.batch_size if budget.steps else None
    return Limits(texts.first + settings.batch_size, most, share * budget.seconds if budget.seconds else None)


def _material(settings: DistillingSettings, lesson: Lesson, texts: Texts, stage: Stage) -> Material:
    folder = student_folder(settings, stage.folder.path).with_dropout(settings.dropout)
    tokenizer = folder.require_tokenizer()
    examples = [*texts.labelled, *texts.lines]
    items = FlatItems.of(lesson.task, examples, tokenizer)
    if cut := sum(items.cuts):
        whole = f"{cut:,} of {len(items):,} texts"
        stage.note(f"{whole} do not fit into {settings.max_length} tokens: the student sees their beginning")
    dev = texts.dev
    dev_items = lesson.task.encode(dev.examples, tokenizer) if dev else []
    return Material(folder, tokenizer, lesson.task, Dataset(examples), dev, items, dev_items)


def _plan(
    settings: DistillingSettings,
    lesson: Lesson,
    texts: Texts,
    parts: tuple[nn.Module, Distilling, TaughtSource],
    stage: Stage,
    spent: float,
) -> Plan:
    """The plan with its steps counted, by epochs or by what is left of a budget."""
    source, stored = parts[2], stage.folder.stored_as(Plan)
    decides = settings.metric or (lesson.task.decides(texts.dev.examples) if texts.dev else lesson.decides)
    per_epoch = source.epochs.steps_in(1)
    if settings.budget is None:
        steps = source.epochs.steps_in(settings.epochs)
    elif stored is not None and stored.budget == settings.budget:
        steps = stored.training.steps  # a time is not measured again, or a resumed run would be another
    else:
        steps = steps_of_budget(settings.budget, *parts, training_of(settings, lesson, decides, TRIAL_STEPS), spent)
    source.epochs.check(processes(), steps)
    stage.note(f"{len(source.items):,} texts: {steps:,} steps, {per_epoch:,} an epoch")
    every = settings.eval_every or max(1, steps // EVALUATIONS)
    return plan_of(settings, len(source.items), training_of(settings, lesson, decides, steps, every))


def _judge(lesson: Lesson, texts: Texts, material: Material, taught: _Taught) -> BesideTeacher:
    dev = Dev(material, None) if material.dev else None
    items = FlatItems.of(lesson.task, texts.held_out, material.tokenizer)
    places = range(len(texts.labelled), texts.first)
    return BesideTeacher(lesson, items, taught(places), dev)


def _save(
    model: nn.Module, path: Path, plan: Plan, material: Material, lesson: Lesson, judge: BesideTeacher, run: Path
) -> None:
    """Write the finished student."""
    judged = judge.judged(model)
    task, encoder = judged.task, encoder_of(model)
    learned = "vectors" if isinstance(lesson, VectorLesson) else "answers"
    if plan.keep_width and isinstance(task, Embed):
        sentence = SentenceSettings(task.pooling, dense=(read_dense(run / AXES),))
        save_model(encoder, path, material.tokenizer, sentence=sentence, max_length=plan.max_length, overwrite=True)
    else:
        save_for_task(
            model,
            path,
            material.tokenizer,
            task={**described(task), **_beside(lesson)},
            architecture=task.architecture,
            labels=getattr(task, "labels", ()),
            foreign=material.folder.config,
            sentence=task.sentence,
            overwrite=True,
        )
    write_student_card(path, plan, encoder.config, learned, judged.scores)


def _beside(lesson: Lesson) -> dict[str, Any]:
    """How the teacher's training data was read, which holds for the student too."""
    if not isinstance(lesson, AnswerLesson):
        return {}
    known = to_mapping(lesson.teacher.trained_on)
    columns = {name: column for name, column in known.pop("columns").items() if column is not None}
    return {
        **{name: value for name, value in known.items() if value is not None},
        **({"columns": columns} if columns else {}),
    }
