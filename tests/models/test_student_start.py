"""A student's start: principal axes against numpy's, embeddings that stay sums, and layers that are the teacher's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.models.bert import BertConfig, initialise
from heedful.models.bert_layers import BertStack
from heedful.models.student_start import follow_teacher
from heedful.nn.principal_axes import principal_axes

SHAPE = BertConfig(
    vocab_size=50,
    hidden_size=12,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=20,
)


def built(seed: int, **other: int) -> BertStack:
    config = replace(SHAPE, **other)  # type: ignore[arg-type]
    encoder = config.build().without_pooler()
    initialise(encoder, config, seed)
    return encoder


def test_the_axes_are_those_of_the_singular_value_decomposition() -> None:
    vectors = torch.randn(40, 7, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 8)
    axes, kept = principal_axes([vectors[:13], vectors[13:]], 3)
    _, lengths, directions = np.linalg.svd(vectors.double().numpy())
    np.testing.assert_allclose(np.abs(axes.T.numpy()), np.abs(directions[:3]), atol=1e-5)
    assert kept == pytest.approx((lengths[:3] ** 2).sum() / (lengths**2).sum())
    torch.testing.assert_close(axes.T @ axes, torch.eye(3), atol=1e-5, rtol=0)


def test_a_space_that_is_wide_enough_keeps_vectors_as_they_are() -> None:
    vectors = torch.randn(5, 3)
    axes, kept = principal_axes([vectors], 4)
    torch.testing.assert_close(vectors @ axes, torch.cat([vectors, torch.zeros(5, 1)], dim=1))
    assert kept == 1


def test_tables_are_turned_alike_so_that_sums_stay_sums() -> None:
    student, teacher = built(1, hidden_size=6, max_position_embeddings=10), built(2)
    follow_teacher(student, teacher, teacher.token_matrix.detach())
    axes, _ = principal_axes([teacher.token_matrix.detach()], 6)
    theirs, ours = teacher.state_dict(), student.state_dict()
    summed = theirs["embeddings.token.weight"][7] + theirs["embeddings.position.weight"][3]
    found = ours["embeddings.token.weight"][7] + ours["embeddings.position.weight"][3]
    torch.testing.assert_close(found, summed @ axes, atol=1e-5, rtol=0)
    name = "layers.0.attention.qkv.weight"
    untouched = built(1, hidden_size=6, max_position_embeddings=10).state_dict()
    assert torch.equal(ours[name], untouched[name])


def test_layers_of_the_same_shape_are_the_teachers_evenly_spread() -> None:
    student, teacher = built(1, num_hidden_layers=2), built(2)
    told = follow_teacher(student, teacher, teacher.token_matrix.detach())
    assert told[-1] == "layers 2, 4 of 4"
    ours, theirs = student.state_dict(), teacher.state_dict()
    for name, tensor in ours.items():
        their_name = name.replace("layers.1.", "layers.3.").replace("layers.0.", "layers.1.")
        assert torch.equal(tensor, theirs[their_name]), name


def test_a_student_with_all_layers_is_the_teacher() -> None:
    student, teacher = built(1), built(2)
    assert len(follow_teacher(student, teacher, teacher.token_matrix.detach())) == 2
    assert all(
        torch.equal(ours, theirs)
        for ours, theirs in zip(student.state_dict().values(), teacher.state_dict().values(), strict=True)
    )
