"""Attention and its derivative, on CPUs and GPUs: kernels that keep no matrix of scores.

On CPUs blocks of queries walk blocks of keys. On GPUs there is one kernel forward and two backward,
one for what queries get and one for what keys and values get, so that nothing is added by two
blocks: a block keeps its rows and meets blocks of columns, which pass two stages of shared memory;
scores stay in registers, on tensor cores as the next product's operand. Few queries with many keys
take these in parts that are joined.

T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, FlashAttention (2022). That a softmax can be summed up while
its maximum is still growing: M. Milakov, N. Gimelshein, Online normalizer calculation for softmax
(2018).
"""
