"""Help: every verb in one group, whole sentences at 80 columns, and an example of every command; completion."""

import re
from collections.abc import Iterator
from itertools import chain

import click
import pytest
from click.testing import CliRunner

from syndic.cli.groups import sentence_of
from syndic.cli.main import GROUPS, LAB, cli, main
from verbs import verbs_of


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with what a person types, groups too."""
    for name, command in verbs_of(group).items():
        words = (*path, name)
        yield " ".join(words), command
        if isinstance(command, click.Group):
            yield from commands(command, words)


ALL = dict(commands(cli))


def help_of(*words: str) -> list[str]:
    result = CliRunner().invoke(cli, [*words, "--help"], prog_name="syndic", terminal_width=80)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_every_verb_is_in_exactly_one_group() -> None:
    grouped = list(chain.from_iterable(GROUPS.values()))
    assert len(grouped) == len(set(grouped))
    assert set(verbs_of(cli)) == set(grouped) | {"audit", "bench", "reproduce"}
    assert "check" not in ALL
    lines = help_of()
    for name in verbs_of(cli):
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1, name
    headings = [line[:-1] for line in lines if re.fullmatch(r"[A-Z][\w ]+:", line)]
    assert headings == ["Options", *GROUPS, LAB]


@pytest.mark.parametrize("words", [(), ("ledger",), ("coordinator",), ("party",)], ids=" ".join)
def test_lists_have_whole_sentences_at_80_columns(words: tuple[str, ...]) -> None:
    lines = help_of(*words)
    listed = " ".join(line.strip() for line in lines[1:] if line.startswith("  "))
    assert "..." not in listed
    assert max(len(line) for line in lines) <= 80
    for name, command in commands(ALL[" ".join(words)] if words else cli):  # type: ignore[arg-type]
        if " " not in name:
            assert f"{name} {sentence_of(command)}" in re.sub(" +", " ", listed)


@pytest.mark.parametrize("name", ALL)
def test_every_command_says_what_it_does_and_has_an_example(name: str) -> None:
    command = ALL[name]
    sentence = sentence_of(command)
    assert sentence.endswith(".")
    assert len(sentence.split()) <= 25
    assert re.search(rf"^ *(Example: )?syndic {re.escape(name)}\b", command.epilog or "", re.MULTILINE), name
    assert all(option.help for option in command.params if isinstance(option, click.Option))


@pytest.mark.parametrize("name", [name for name in ALL if name.split()[0] not in {"audit", "bench", "reproduce"}])
def test_help_fits_80_columns(name: str) -> None:
    assert [line for line in help_of(*name.split()) if len(line) > 80] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["syndic"])
    monkeypatch.setenv("_SYNDIC_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "_SYNDIC_COMPLETE" in capsys.readouterr().out


def test_completion_knows_verbs_and_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["syndic"])
    monkeypatch.setenv("_SYNDIC_COMPLETE", "bash_complete")
    for words, wanted in (("syndic wit", "plain,withdraw"), ("syndic ledger sh", "plain,show")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        with pytest.raises(SystemExit):
            main()
        assert wanted in capsys.readouterr().out.splitlines()
