"""Small packages made on the spot, so that tests of fetching need no index."""

import io
import tarfile
import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, *requires: str, tag: str = "py3-none-any", code: str = "") -> Path:
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0", *(f"Requires-Dist: {item}" for item in requires)]
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": code or f"NAME = {name!r}\n",
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-tool = {name}:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    wheel = folder / f"{name}-1.0-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def make_source(folder: Path, name: str, proof: Path) -> Path:
    """A source distribution that writes a file when it is built; it needs nothing from an index for that."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "pyproject.toml": f'{project}[project]\nname = "{name}"\nversion = "1.0"\n',
        "backend.py": f"open({str(proof)!r}, 'w').write('built')\n",
    }
    source = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return source
