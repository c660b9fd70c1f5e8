#!/bin/sh
# Installs the libraries of the peers that are named, or of all, in the versions that are pinned here, into target/.
# What is there already in that version stays.
set -eu
cd "$(dirname "$0")"

# Whether $peer was installed from a file with this content.
installed() {
    mkdir -p target
    cksum <"$1" >target/wanted
    cmp -s target/wanted "target/$peer/installed"
}

done_with() {
    mv target/wanted "target/$peer/installed"
}

python() {
    installed "$peer/requirements.txt" && return
    rm -rf "target/$peer"
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --root-user-action ignore \
        --target "target/$peer" --requirement "$peer/requirements.txt"
    done_with
}

javascript() {
    installed "$peer/package-lock.json" && return
    rm -rf "target/$peer"
    mkdir -p "target/$peer"
    cp "$peer/package.json" "$peer/package-lock.json" "target/$peer/"
    npm ci --prefix "target/$peer" --ignore-scripts --no-audit --no-fund --loglevel error
    done_with
}

rust() {
    cargo build --release --quiet --locked --manifest-path "$peer/Cargo.toml" --target-dir "target/$peer"
}

for peer in ${*:-jayson jsonrpclib-pelix jsonrpcserver jsonrpsee}; do
    case $peer in
    jayson) javascript ;;
    jsonrpclib-pelix | jsonrpcserver) python ;;
    jsonrpsee) rust ;;
    *)
        echo "install.sh: there is no peer $peer" >&2
        exit 2
        ;;
    esac
done
