/** A log with entries of many kinds, and proofs of anything in it: the real log and the real proof reader, on a memory disk. */
import { proofJson } from '../../src/doors/http/proof-document.ts';
import type { EntryProof, ProofRequest } from '../../src/governance/gate-contract.ts';
import { ProofDesk } from '../../src/governance/desks/proof-desk.ts';
import type { NoteSigner } from '../../src/log/tree/checkpoint-note.ts';
import type { EntryDraft } from '../../src/log/entries/entry.ts';
import type { LocalLog } from '../../src/log/log.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { accessDraft, context, openLog, origin, rowsDraft, worldOn } from '../log/world.ts';

/** A proof as the JSON that a server sends: tests change it at will. */
export type Document = Record<string, unknown> & {
  leaf_index: number;
  position: number | null;
  tree_size: number;
  inclusion_path: string[];
  checkpoint: string;
  consistency?: Prefix;
  row?: Record<string, unknown> & { path: string[] };
  branch?: Record<string, unknown> & { fork: Prefix };
};

export type Prefix = { first: number; second: number; first_root_hash: string; path: string[] };

export class ProofWorld {
  readonly log: LocalLog;
  readonly key: string;
  /** The log's own: for what a log could do that lies. */
  readonly signer: NoteSigner;
  /** Position of each branch's fork, by name. */
  readonly forks = new Map<string, number>();
  /** Of each entry: the keys of its rows. */
  readonly rows: string[][] = [];
  readonly #proofs: ProofDesk;

  private constructor(log: LocalLog, signer: NoteSigner) {
    this.log = log;
    this.signer = signer;
    this.key = log.proofs.key;
    this.#proofs = new ProofDesk({
      proofs: log.proofs,
      origin,
      visible: () => true,
      readable: () => true,
      positionAt: () => -1,
      forkOf: (branch) => this.forks.get(branch),
    });
  }

  /**
   * The same words give the same bytes: two worlds of one seed differ from the entry on where their words do.
   * Entry 0 is the genesis; nothing is sealed by itself.
   */
  static async of(words: readonly string[], seed = 'proofs'): Promise<ProofWorld> {
    const { log, keyring } = await openLog(worldOn(new MemoryDisk(), seed), { sealIdleMs: 0 });
    const world = new ProofWorld(log, keyring.signer);
    world.rows.push([]);
    for (const word of words) await world.append(word);
    return world;
  }

  async append(word: string): Promise<void> {
    const leaf = this.rows.length;
    const keys = keysOf(leaf, word);
    const draft = draftOf(leaf, word, keys);
    const { entries, acknowledged } = this.log.append([draft], { sync: true });
    await acknowledged;
    this.rows.push(draft.body.kind === 'rows' ? keys : []);
    if (draft.body.kind === 'branch') this.forks.set(draft.body.name, entries[0]!.position);
  }

  get size(): number {
    return this.rows.length;
  }

  async prove(request: ProofRequest): Promise<Document> {
    return proofJson(await this.proof(request)) as Document;
  }

  proof(request: ProofRequest): Promise<EntryProof> {
    return this.#proofs.entry(request);
  }

  async headAt(size: number): Promise<string> {
    return (await this.log.proofs.headAt(size)).note;
  }
}

/** Every fifth entry is no rows entry: a branch, an access record, a type, a seal's like. */
function draftOf(leaf: number, word: string, keys: readonly string[]): EntryDraft {
  if (leaf % 10 === 4) {
    const name = `${word} "${leaf}"`;
    const body = {
      kind: 'branch',
      change: 'forked',
      name,
      source: leaf % 20 === 4 ? 'main' : 'bränch\n',
      shares: 'everything',
    } as const;
    return { context: { ...context, branch: name }, body };
  }
  if (leaf % 10 === 9) return accessDraft(word);
  return rowsDraft(keys, leaf);
}

function keysOf(leaf: number, word: string): string[] {
  return Array.from({ length: (leaf * 7) % 13 === 0 ? 1 : (leaf * 7) % 13 }, (_, i) => `${word} é ${leaf}.${i}`);
}

export const words = (count: number, from = 'row'): string[] => Array.from({ length: count }, (_, i) => `${from}${i}`);
