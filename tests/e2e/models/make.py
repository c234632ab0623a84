"""Make the models of the end-to-end test: ``make.py FOLDER`` (run by the engine's own Python).

tiny         the target: two layers of random weights, with a tokenizer trained on the standard library's source
tiny-good    its drafter: the target with a little noise, so most of what it drafts is accepted
tiny-draft   a drafter that has nothing to do with it: other random weights, so nothing is accepted
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 1024
NOISE = 0.0004
CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m.role if m.role in ('user', 'assistant') else 'user' }}|>{{ m.content }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    sources = sorted(str(path) for path in Path(os.__file__).parent.glob("*.py"))[:120]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train(
        sources,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=["<|pad|>", "<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<|bos|>", eos_token="<|eos|>", pad_token="<|pad|>")
    fast.chat_template = CHAT_TEMPLATE
    return fast


def llama(layers: int, seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    hidden = 128
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=hidden // 64,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).to(torch.float32)


def disturbed(model: LlamaForCausalLM) -> LlamaForCausalLM:
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.add_(torch.randn_like(parameter) * NOISE)
    return model


def main(folder: Path) -> None:
    words = tokenizer()
    made = {"tiny": llama(2, seed=0), "tiny-draft": llama(1, seed=1), "tiny-good": disturbed(llama(2, seed=0))}
    for name, model in made.items():
        model.save_pretrained(folder / name)
        words.save_pretrained(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
