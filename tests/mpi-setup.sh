#!/usr/bin/env bash
# Finds an MPI, and on Debian as root installs what is missing of it. To be sourced in the root of
# the project, with MPI=openmpi (the default) or MPI=mpich. Sets `mpi` and `launcher`, and exports
# MPICC, by which the crate `mpi` is built.

mpi=${MPI:-openmpi}

# Debian names each MPI's programs; elsewhere the plain names are taken.
pick() {
    if command -v "$1.$mpi" >/dev/null; then
        echo "$1.$mpi"
    elif [ "$mpi" = openmpi ] && command -v "$1" >/dev/null; then
        echo "$1"
    fi
}

# Whether bindgen has its needs: libclang, and clang's own headers, for Open MPI's mpi.h includes
# stddef.h.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null &&
        compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stddef.h' >/dev/null && return
    command -v llvm-config >/dev/null && ls "$(llvm-config --libdir)"/libclang.* >/dev/null 2>&1
}

install_what_is_missing() {
    local packages=()
    if [ -z "$(pick mpicc)" ] || [ -z "$(pick mpirun)" ]; then
        case $mpi in
            openmpi) packages+=(libopenmpi-dev openmpi-bin) ;;
            mpich) packages+=(libmpich-dev mpich) ;;
            *) echo "MPI=$mpi: wants openmpi or mpich" >&2; exit 1 ;;
        esac
    fi
    local clang=no
    has_libclang || clang=yes
    [ ${#packages[@]} = 0 ] && [ $clang = no ] && return
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "mpicc, mpirun and libclang are needed (Debian: apt-get install libopenmpi-dev openmpi-bin libclang-dev)" >&2
        exit 1
    fi
    apt-get update
    if [ $clang = yes ]; then
        local version
        version=$(apt-cache depends libclang-dev | sed -n 's/.*Depends: libclang-\([0-9]*\)-dev.*/\1/p' | head -1)
        packages+=("libclang1-$version" "libclang-common-$version-dev")
    fi
    apt-get install -y --no-install-recommends "${packages[@]}"
}

install_what_is_missing
MPICC=$(pick mpicc)
export MPICC
launcher=$(pick mpirun)
