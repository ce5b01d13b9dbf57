/** Mistakes that let a lie through a proof, or a proof through to somebody who may not have it. */
import type { Mutant } from '../mutant.ts';

const verifier = 'verify/annals-verify.mjs';
const reader = 'src/governance/desks/proof-desk.ts';
const signedHeads = 'src/log/append/signed-heads.ts';
const agreement = ['test/proofs/agreement.test.ts'];
const liar = ['test/proofs/lying-server.test.ts'];
const http = ['test/doors/http/proof.test.ts'];
const heads = ['test/log/proofs/proofs.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'proofs: any signature under a known key will do',
    file: verifier,
    find: "    demand(genuine, 'the signature is not genuine');\n",
    replace: '',
    killedBy: agreement,
  },
  {
    name: 'proofs: growth is believed for its first root alone',
    file: verifier,
    find: ' && same(newHash, secondRoot);',
    replace: ';',
    killedBy: [...agreement, ...liar],
  },
  {
    name: 'proofs: a salt may take bytes of the row',
    file: verifier,
    find: "  demand(claim.salt.length === 16, 'the salt is not of 16 bytes');\n",
    replace: '',
    killedBy: agreement,
  },
  {
    name: 'proofs: the last of two members counts',
    file: verifier,
    find: "  wellFormed(named === members, 'the JSON has a member twice');\n",
    replace: '',
    killedBy: agreement,
  },
  {
    name: 'proofs: a held head is compared by size only',
    file: verifier,
    find: 'demand(same(held.root, growth.first_root_hash), ',
    replace: 'demand(true, ',
    killedBy: liar,
  },
  {
    name: 'proofs: a leaf may be taken for another place',
    file: verifier,
    find: "  demand(leaf.leaf === proof.leaf_index, 'the leaf gives itself another number than its place in the tree');\n",
    replace: '',
    killedBy: agreement,
  },
  {
    name: 'proofs: entries of others are proven too',
    file: reader,
    find: "if (kind !== 'access' && this.#proofSources.visible(context.path, time)) return true;",
    replace: "if (kind !== 'access') return true;",
    killedBy: http,
  },
  {
    name: 'proofs: rows removed for good are shown',
    file: reader,
    find: 'if (this.#isRowReadable(context, body.type, time + BigInt(row))) ',
    replace: '',
    killedBy: http,
  },
  {
    name: 'proofs: a head is given out and not stored',
    file: signedHeads,
    find: 'await this.#storeHead(this.sign({ size: durableLeaves, root: root(durableLeaves) }));',
    replace: 'this.#storedHead = this.sign({ durableLeaves, root: root(durableLeaves) });',
    killedBy: heads,
  },
  {
    name: 'proofs: a head covers what is not durable',
    file: signedHeads,
    find: '      const durableLeaves = logWriter.durableLeaves;\n',
    replace: '      const durableLeaves = this.#headOptions.leaves();\n',
    killedBy: heads,
  },
];
