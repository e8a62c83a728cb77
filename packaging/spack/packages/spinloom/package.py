"""The libraries of Spinloom and its layer under MPI programs, without the Python package.

Spinloom is on no index: the recipe builds a checkout, which `spack develop` names (docs/installing.md).
"""

from spack.package import *

# What is built and installed, beside the C library of layouts: a CMake component, and its targets.
COMPONENTS = {
    "slmp": ["spinloom_slmp_library"],
    "ethernet": ["spinloom_ethernet_library"],
    "portals": ["spinloom_portals_library"],
    "mpi": ["spinloom_mpi_library", "spinloom_heap", "spinloom_man_mpi"],
}


class Spinloom(CMakePackage):
    """Layouts of non-contiguous data, a layer under MPI programs, Portals 4 and NICs that run handlers."""

    license("BSD-3-Clause")

    version("0.1.0")

    variant("slmp", default=True, description="SLMP over UDP sockets")
    variant("ethernet", default=True, description="A program's side of an Ethernet NIC that runs handlers")
    variant("portals", default=True, description="Portals 4 between processes")
    variant("mpi", default=True, description="The layer under MPI programs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("python@3.11:", type="build")  # writes the manual pages

    conflicts("platform=darwin")
    conflicts("platform=windows")

    def chosen(self):
        return ["layout", *(name for name in COMPONENTS if self.spec.satisfies(f"+{name}"))]

    @property
    def build_targets(self):
        targets = [target for name in self.chosen() for target in COMPONENTS.get(name, [])]
        return ["spinloom_layout_library", *targets]

    def cmake_args(self):
        return [self.define("SPINLOOM_PYTHON", False), self.define("SPINLOOM_HANDLERS", False)]

    def install(self, spec, prefix):
        for name in self.chosen():
            cmake("--install", self.build_directory, "--component", name, "--prefix", prefix)
