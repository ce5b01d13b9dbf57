/** NARRATIVE_TRACE: where a text was said first, and who said it after. Source: specification, "SQL dialect", the table of operators. */
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { TableFunction } from '../../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from '../domain-function.ts';
import { type Post, postsOf, wordsOf } from './scored-posts.ts';

export const narrativeTrace: TableFunction = domainFunction({
  name: 'NARRATIVE_TRACE',
  summary: 'Posts that say what a text or a post says, the first appearance first, each with the one that it follows.',
  method: 'minhash/1',
  arguments: [
    { name: 'X', kind: 'key', required: true, summary: 'id of a post, else the text itself' },
    { name: 'SIMILARITY', kind: 'number', least: 0, most: 1, summary: 'the least similarity of a post; 0.7 by default' },
  ],
  roles: [{ role: 'post' }],
  columns: [
    { name: 'hop', type: 'integer' },
    { name: 'post', type: 'string' },
    { name: 'account', type: 'string' },
    { name: 'at', type: 'timestamp' },
    { name: 'similarity', type: 'number' },
    { name: 'parent', type: 'string' },
  ],
  isOrdered: true,
  run: trace,
});

interface Signed {
  readonly post: Post;
  readonly signature: Uint32Array | null;
}

function* trace(call: DomainCall): Steps<readonly DomainRow[]> {
  const least = call.number('SIMILARITY', 0.7);
  const given = call.text('X')!;
  const all = yield* call.reuse('signatures', ['post'], () => signPosts(call));
  const asked = signatureOf(all.find(({ post }) => post.id === given)?.post.text ?? given);
  if (asked === null) return [];
  const chunks: { readonly post: Post; readonly signature: Uint32Array; readonly similarity: number }[] = [];
  for (const [i, { post, signature }] of all.entries()) {
    if (i % postsAtOnce === postsAtOnce - 1) yield;
    call.look(2);
    const similarity = signature === null ? 0 : similarityOf(asked, signature);
    if (signature !== null && similarity >= least) chunks.push({ post, signature, similarity });
  }
  const hops = new Map<string, number>();
  const rows: DomainRow[] = [];
  for (const [i, { post, signature, similarity }] of chunks.entries()) {
    const parent = parentOf(chunks.slice(Math.max(0, i - parentsMax), i), post, signature);
    const hop = parent === null ? 0 : hops.get(parent)! + 1;
    hops.set(post.id, hop);
    rows.push({
      nodeId: post.id,
      type: post.type,
      cells: [BigInt(hop), post.id, post.account, post.at, similarity, parent],
      score: similarity,
      evidence: { by: parent === null ? 'first' : parent === post.replyTo || parent === post.object ? 'reference' : 'text' },
      systemFrom: post.systemFrom,
    });
    if (i % followedAtOnce === followedAtOnce - 1) yield;
  }
  return rows;
}

/** Earlier posts that one may follow: the nearest in time. */
const parentsMax = 1_000;
const postsAtOnce = 1_024;
/** Each is compared with all that it may follow. */
const followedAtOnce = 8;

/** The post that it replies to or shares, where that is one of them; else the earlier one that is most alike, the first of several. */
function parentOf(
  earlier: readonly { readonly post: Post; readonly signature: Uint32Array }[],
  post: Post,
  signature: Uint32Array,
): string | null {
  const named = earlier.find((each) => each.post.id === post.replyTo || each.post.id === post.object);
  if (named !== undefined) return named.post.id;
  let best: string | null = null;
  let most = -1;
  for (const each of earlier) {
    const similarity = similarityOf(each.signature, signature);
    if (similarity > most) [best, most] = [each.post.id, similarity];
  }
  return best;
}

function* signPosts(call: DomainCall): Steps<{ readonly value: readonly Signed[]; readonly bytes: number }> {
  const value: Signed[] = [];
  let bytes = 0;
  for (const post of yield* postsOf(call)) {
    value.push({ post, signature: signatureOf(post.text) });
    bytes += 400 + 2 * post.text.length + 4 * permutations;
    call.look(looksPerSignature);
    if (value.length % 256 === 0) {
      call.hold(bytes);
      yield;
    }
  }
  return { value, bytes };
}

const looksPerSignature = 500;
const permutations = 128;
const shingleWords = 2;

/** The least hash of every shingle under each permutation: as many are equal as the sets of shingles are alike. */
function signatureOf(text: string): Uint32Array | null {
  const words = wordsOf(text.replaceAll(/https?:\S+/g, ' '));
  if (words.length < shingleWords) return null;
  const signature = new Uint32Array(permutations).fill(0xffffffff);
  for (let i = 0; i + shingleWords <= words.length; i++) {
    const hash = hashOf(words.slice(i, i + shingleWords).join(' '));
    for (let p = 0; p < permutations; p++) {
      const permuted = mixBits(hash ^ Math.imul(p + 1, 0x9e3779b1));
      if (permuted < signature[p]!) signature[p] = permuted;
    }
  }
  return signature;
}

function similarityOf(left: Uint32Array, right: Uint32Array): number {
  let same = 0;
  for (let p = 0; p < permutations; p++) if (left[p] === right[p]) same++;
  return same / permutations;
}

/** FNV-1a over UTF-16 units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The finaliser of MurmurHash3. */
function mixBits(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
