"""Releases in a folder: their statements and files, how two of them differ, and releases added as archives.

A release is in `releases/NAME` of the folder. Names in requests are looked up in a listing of that folder; none is ever
joined to a path.
"""

import io
import re
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from syndic.console.views import Comparison, ReleaseLine, ReleaseView, UnknownError
from syndic.document import from_file
from syndic.errors import InputError, SyndicError
from syndic.privacy.audit import AuditLog
from syndic.report import Bars, Series, coefficient_tables, report
from syndic.report.page import Grid
from syndic.study import Release
from syndic.study.differences import ColumnDistance, differences
from syndic.study.statement import Statement, costs_of, overstates
from syndic.study.study_folder import StudyFolder

ARCHIVE_BYTES: Final = 64 * 10**6
_UNPACKED_BYTES: Final = 512 * 10**6
_READ_BYTES: Final = 2 * 10**9
_MOST_FILES: Final = 64
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(\.(json|parquet|csv|npz|html))?")


def releases(folder: Path) -> tuple[ReleaseLine, ...]:
    """Return the releases of the folder, by name; what cannot be read as one is left out."""
    found = []
    for name, place in _places(folder).items():
        try:
            found.append(_line(folder, name, from_file(place / "statement.json", Statement)))
        except SyndicError:
            continue
    return tuple(found)


def release(folder: Path, name: str) -> ReleaseView:
    """Return what a release states and its files."""
    place = _place(folder, name)
    statement = from_file(place / "statement.json", Statement)
    return ReleaseView(
        line=_line(folder, name, statement),
        statement=statement,
        files={key: path.stat().st_size for key, path in _files(place).items()},
        others=tuple(one for one in releases(folder) if one.name != name),
        coefficients=_coefficients(place),
    )


def _coefficients(place: Path) -> tuple[Grid, ...]:
    """Return the coefficients of a learnt model or a Gram matrix; none of a release that cannot be read."""
    if not {"gram.json", "coefficients.csv"} & set(_files(place)):
        return ()
    try:
        return coefficient_tables(Release.load(place))
    except SyndicError:
        return ()


def release_file(folder: Path, name: str, file: str) -> bytes:
    """Return one file of a release."""
    files = _files(_place(folder, name))
    if file not in files:
        raise UnknownError(f"release {name} has no such file")
    return files[file].read_bytes()


def archive(folder: Path, name: str) -> bytes:
    """Return all files of a release in one archive, to pass on."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for key, path in _files(_place(folder, name)).items():
            target.writestr(zipfile.ZipInfo(key), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def add_release(folder: Path, content: bytes) -> ReleaseLine:
    """Unpack an archive if it is a release, without its report: the console makes its own."""
    stored = folder / "releases"
    stored.mkdir(exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=stored, prefix=".arriving-") as draft:
        _unpack(content, Path(draft))
        _check_sizes(Path(draft))
        read = _loaded(Path(draft))
        _check_statement(read)
        name = f"{read.statement.digest[:16]}{'' if read.statement.protects else '-rehearsal'}"
        if (stored / name).exists():
            raise InputError(f"release {name} is already in this folder")
        target = stored / name
        with AuditLog(folder).attempt("add a release", study=read.statement.digest):
            try:
                shutil.copytree(draft, target)
            except FileExistsError:
                raise InputError(f"release {name} is already in this folder") from None
    return _line(folder, name, read.statement)


def report_page(folder: Path, name: str) -> bytes:
    """Return the report of a release, made from its files."""
    loaded = _loaded(_place(folder, name))
    with tempfile.TemporaryDirectory() as place:
        return report(loaded, Path(place) / "report.html").read_bytes()


def compare(folder: Path, first: str, second: str) -> Comparison:
    """Return what two releases state differently, and how far the shares of their common columns differ."""
    one, two = _loaded(_place(folder, first)), _loaded(_place(folder, second))
    stated, columns = differences(one, two)
    return Comparison(
        first=_line(folder, first, one.statement),
        second=_line(folder, second, two.statement),
        changes=stated,
        columns=columns,
    )


def comparison_figure(column: ColumnDistance, names: tuple[str, str]) -> str:
    """Return the shares of a column in both releases as SVG."""
    return Bars(
        title=column.column,
        description=f"Distance {column.distance:.3f}: half the sum of all differences of shares.",
        labels=column.labels,
        series=(Series(names[0], column.first), Series(names[1], column.second)),
        form="percent",
        lying=len(column.labels) <= 12,
    ).inline()


def _loaded(place: Path) -> Release:
    """Read a release that somebody else may have made."""
    try:
        return Release.load(place)
    except SyndicError:
        raise
    except Exception as error:
        # other readers raise their own errors, which may quote the content
        raise InputError("this is not a release: one of its files cannot be read") from error


def _line(folder: Path, name: str, statement: Statement) -> ReleaseLine:
    known = any(
        (StudyFolder.of(folder, place.name).folder / "study.json").is_file() and statement.digest.startswith(place.name)
        for place in (folder / "studies").glob("*")
    )
    return ReleaseLine(
        name=name,
        study=statement.study,
        digest=statement.digest,
        method=statement.method,
        epsilon=statement.epsilon,
        delta=statement.delta,
        cost="; ".join(costs_of(statement)),
        protects=statement.protects,
        agreed=known,
    )


def _places(folder: Path) -> dict[str, Path]:
    """Return the folders of releases by name, without links to other places."""
    stored = (folder / "releases").resolve()
    return {
        place.name: place
        for place in sorted(stored.glob("*"))
        if _NAME.fullmatch(place.name) and place.resolve() == place and (place / "statement.json").is_file()
    }


def _place(folder: Path, name: str) -> Path:
    places = _places(folder)
    if name not in places:
        raise UnknownError("there is no such release here")
    return places[name]


def _files(place: Path) -> dict[str, Path]:
    return {
        path.name: path
        for path in sorted(place.iterdir())
        if path.is_file() and not path.is_symlink() and _NAME.fullmatch(path.name) and path.suffix
    }


def _check_sizes(place: Path) -> None:
    """Refuse small files that would not fit into memory when read."""
    room = _READ_BYTES
    try:
        for path in sorted(place.iterdir()):
            if path.suffix == ".npz":
                with zipfile.ZipFile(path) as packed:
                    room -= sum(member.file_size for member in packed.infolist())
            elif path.suffix == ".parquet":
                room -= _table_bytes(path, room)
            if room < 0:
                raise InputError(f"the release takes more than {_READ_BYTES // 10**6} MB of memory")
    except (zipfile.BadZipFile, pa.ArrowException, OSError) as error:
        raise InputError("this is not a release: one of its files cannot be read") from error


def _table_bytes(path: Path, room: int) -> int:
    """Return the bytes of a table in memory, or more than `room`: a repeated text is stored once and read often."""
    taken = 0
    with pq.ParquetFile(path) as found:
        texts = [one.name for one in found.schema_arrow if pa.types.is_string(one.type) or pa.types.is_binary(one.type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches():
            taken += sum(_array_bytes(column) for column in batch.columns)
            if taken > room:
                break
    return taken


def _array_bytes(values: Any) -> int:
    if not pa.types.is_dictionary(values.type):
        return int(values.nbytes)
    lengths = pc.binary_length(values.dictionary).take(values.indices)
    return int(pc.sum(lengths).as_py() or 0) + 8 * len(values)


def _check_statement(read: Release) -> None:
    """Refuse a statement that belongs to another study, or claims more protection than its study gives."""
    if read.statement.digest != read.study.digest:
        raise InputError("statement and study of the archive do not belong together")
    try:
        less = overstates(read.statement, read.study)
    except (SyndicError, ValueError, ArithmeticError) as error:
        raise InputError("the study of the archive could not have run") from error
    if less:
        raise InputError("the statement of the archive promises more than its study gives")


def _unpack(content: bytes, target: Path) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            members = packed.infolist()
            if len(members) > _MOST_FILES:
                raise InputError(f"the archive has more than {_MOST_FILES} files")
            room = _UNPACKED_BYTES
            for member in members:
                if not _NAME.fullmatch(member.filename) or "." not in member.filename:
                    raise InputError("the archive contains a file that is not part of a release")
                if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                    raise InputError("the archive uses a compression that the console does not read: use deflate")
                with packed.open(member) as file:
                    unpacked = file.read(room + 1)
                room -= len(unpacked)
                if room < 0:
                    raise InputError(f"the archive unpacks to more than {_UNPACKED_BYTES // 10**6} MB")
                if not member.filename.endswith(".html"):
                    (target / member.filename).write_bytes(unpacked)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError) as error:
        raise InputError("the file is not an archive of a release, or it is damaged") from error
