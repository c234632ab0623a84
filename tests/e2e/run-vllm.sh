#!/bin/sh
# Draftgauge against a real vLLM on the CPU. Makes the engine's environment and models on first use.
# Prints PROVEN and exits 0, or says what is not as it should be and exits 1.
set -u
cd "$(dirname "$0")/../.." || exit 1

ENGINE=.venv-vllm
LOCK=tests/e2e/lock-vllm.txt
PIP="$ENGINE/bin/python -m pip install -q --disable-pip-version-check --no-deps"

not_proven() {
    echo "NOT PROVEN: $1"
    exit 1
}

if [ ! "$ENGINE/ready" -nt "$LOCK" ]; then
    echo "Installing vLLM into $ENGINE (2.5 GB)"
    [ -x "$ENGINE/bin/python" ] || "${PYTHON:-python3.11}" -m venv "$ENGINE" || not_proven "no Python 3.11 for vLLM"
    # The CPU build of torch is not on PyPI.
    $PIP -r "$LOCK" ||
        { $PIP --index-url https://download.pytorch.org/whl/cpu "$(grep '^torch==' "$LOCK")" && $PIP -r "$LOCK"; } ||
        not_proven "vLLM cannot be installed here (see above)"
    touch "$ENGINE/ready"
fi

if [ ! "$ENGINE/models/ready" -nt tests/e2e/models/make.py ]; then
    OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 "$ENGINE/bin/python" tests/e2e/models/make.py "$ENGINE/models" ||
        not_proven "the models cannot be made"
    touch "$ENGINE/models/ready"
fi

exec .venv/bin/python tests/e2e/prove.py --python "$ENGINE/bin/python" --models "$ENGINE/models"
