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
  run: traceNarrative,
});

interface SignedPost {
  readonly post: Post;
  readonly signature: Uint32Array | null;
}

function* traceNarrative(narrativeCall: DomainCall): Steps<readonly DomainRow[]> {
  const similarityMin = narrativeCall.number('SIMILARITY', 0.7);
  const soughtText = narrativeCall.text('X')!;
  const signedPosts = yield* narrativeCall.reuse('signatures', ['post'], () => signPostTexts(narrativeCall));
  const soughtSignature = minhashOf(signedPosts.find(({ post }) => post.id === soughtText)?.post.text ?? soughtText);
  if (soughtSignature === null) return [];
  const chunks: { readonly post: Post; readonly signature: Uint32Array; readonly similarity: number }[] = [];
  for (const [i, { post, signature }] of signedPosts.entries()) {
    if (i % narrativePostsAtOnce === narrativePostsAtOnce - 1) yield;
    narrativeCall.look(2);
    const postSimilarity = signature === null ? 0 : minhashSimilarity(soughtSignature, signature);
    if (signature !== null && postSimilarity >= similarityMin) chunks.push({ post, signature, similarity: postSimilarity });
  }
  const postHops = new Map<string, number>();
  const narrativeRows: DomainRow[] = [];
  for (const [i, { post, signature, similarity }] of chunks.entries()) {
    const parentPost = narrativeParent(chunks.slice(Math.max(0, i - narrativeParentsMax), i), post, signature);
    const postHop = parentPost === null ? 0 : postHops.get(parentPost)! + 1;
    postHops.set(post.id, postHop);
    narrativeRows.push({
      nodeId: post.id,
      type: post.type,
      cells: [BigInt(postHop), post.id, post.account, post.at, similarity, parentPost],
      score: similarity,
      evidence: {
        by: parentPost === null ? 'first' : parentPost === post.replyTo || parentPost === post.object ? 'reference' : 'text',
      },
      systemFrom: post.systemFrom,
    });
    if (i % postsFollowedAtOnce === postsFollowedAtOnce - 1) yield;
  }
  return narrativeRows;
}

/** Earlier posts that one may follow: the nearest in time. */
const narrativeParentsMax = 1_000;
const narrativePostsAtOnce = 1_024;
/** Each is compared with all that it may follow. */
const postsFollowedAtOnce = 8;

/** The post that it replies to or shares, where that is one of them; else the earlier one that is most alike, the first of several. */
function narrativeParent(
  earlier: readonly { readonly post: Post; readonly signature: Uint32Array }[],
  post: Post,
  signature: Uint32Array,
): string | null {
  const namedParent = earlier.find((earlierPost) => earlierPost.post.id === post.replyTo || earlierPost.post.id === post.object);
  if (namedParent !== undefined) return namedParent.post.id;
  let bestParent: string | null = null;
  let mostSimilarity = -1;
  for (const each of earlier) {
    const parentSimilarity = minhashSimilarity(each.signature, signature);
    if (parentSimilarity > mostSimilarity) [bestParent, mostSimilarity] = [each.post.id, parentSimilarity];
  }
  return bestParent;
}

function* signPostTexts(narrativeCall: DomainCall): Steps<{ readonly value: readonly SignedPost[]; readonly bytes: number }> {
  const signedPosts: SignedPost[] = [];
  let signedBytes = 0;
  for (const post of yield* postsOf(narrativeCall)) {
    signedPosts.push({ post, signature: minhashOf(post.text) });
    signedBytes += 400 + 2 * post.text.length + 4 * minhashPermutations;
    narrativeCall.look(minhashLooks);
    if (signedPosts.length % 256 === 0) {
      narrativeCall.hold(signedBytes);
      yield;
    }
  }
  return { value: signedPosts, bytes: signedBytes };
}

const minhashLooks = 500;
const minhashPermutations = 128;
const wordsPerShingle = 2;

/** The least hash of every shingle under each permutation: as many are equal as the sets of shingles are alike. */
function minhashOf(postText: string): Uint32Array | null {
  const postWords = wordsOf(postText.replaceAll(/https?:\S+/g, ' '));
  if (postWords.length < wordsPerShingle) return null;
  const minhash = new Uint32Array(minhashPermutations).fill(0xffffffff);
  for (let i = 0; i + wordsPerShingle <= postWords.length; i++) {
    const hashedShingle = shingleHash(postWords.slice(i, i + wordsPerShingle).join(' '));
    for (let permutation = 0; permutation < minhashPermutations; permutation++) {
      const permutedHash = mixHashBits(hashedShingle ^ Math.imul(permutation + 1, 0x9e3779b1));
      if (permutedHash < minhash[permutation]!) minhash[permutation] = permutedHash;
    }
  }
  return minhash;
}

function minhashSimilarity(leftSignature: Uint32Array, rightSignature: Uint32Array): number {
  let sameHashes = 0;
  for (let permutation = 0; permutation < minhashPermutations; permutation++)
    if (leftSignature[permutation] === rightSignature[permutation]) sameHashes++;
  return sameHashes / minhashPermutations;
}

/** FNV-1a over UTF-16 units. */
function shingleHash(shingleText: string): number {
  let fnvHash = 0x811c9dc5;
  for (let i = 0; i < shingleText.length; i++) fnvHash = Math.imul(fnvHash ^ shingleText.charCodeAt(i), 0x01000193);
  return fnvHash >>> 0;
}

/** The finaliser of MurmurHash3. */
function mixHashBits(hashValue: number): number {
  let mixedBits = hashValue;
  mixedBits = Math.imul(mixedBits ^ (mixedBits >>> 16), 0x85ebca6b);
  mixedBits = Math.imul(mixedBits ^ (mixedBits >>> 13), 0xc2b2ae35);
  return (mixedBits ^ (mixedBits >>> 16)) >>> 0;
}
