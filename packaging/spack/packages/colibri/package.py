# Copyright of Colibri's authors.
#
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Colibri from the source archive that `make dist` makes, which holds the source of every crate.

    spack repo add packaging/spack
    cd FOLDER-OF-THE-ARCHIVE && spack install --no-checksum colibri ^openmpi@4.1
"""

import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.makefile import MakefilePackage
except ImportError:
    # Before Spack 1.0 spack.package had it.
    pass


class Colibri(MakefilePackage):
    """Calibrates a cluster, predicts what every MPI collective costs, decides, checks, and writes
    what the MPI library loads."""

    manual_download = True
    url = f"file://{os.getcwd()}/colibri-0.1.0.tar.gz"

    license("MIT OR Apache-2.0")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    # The bindings to MPI are made by libclang.
    depends_on("llvm+clang", type="build")
    depends_on("mpi")
    # The virtual cluster.
    depends_on("iproute2", type="run", when="platform=linux")

    # The preload library and the tracer stand before the calls of Linux's loader.
    requires("platform=linux")

    def setup_build_environment(self, env):
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        env.set("CARGO_NET_OFFLINE", "true")
        env.set("MPICC", self.spec["mpi"].mpicc)
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def build(self, spec, prefix):
        make("compile")
        # With the library's path in the program, so that no module has to be loaded for it.
        make("programs", f"MPICC={spec['mpi'].mpicc}")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def starts(self):
        Executable(self.prefix.bin.colibri)("--version")
