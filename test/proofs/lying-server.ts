/**
 * A server that owns the log's key and lies: it forks its history, rewrites rows, rolls back, signs what it likes, mixes
 * proofs of two trees, and answers with what it said before. Against it a client that keeps one checkpoint and asks the
 * verifier. What must hold: the client never believes two values for one place, whatever it is sent, and never accuses a
 * server that is honest.
 */
import { signCheckpoint } from '../../src/log/tree/checkpoint-note.ts';
import { origin } from '../log/world.ts';
import { Dice } from './cases.ts';
import { verifierSays } from './judges.ts';
import { type Document, ProofWorld, words } from './world.ts';

/** Two heads of one key that no honest log signs, and the proof that ties them to different trees. */
export interface Evidence {
  readonly held: string;
  /** Proves its own head, and with it another root for the size of the held one. */
  readonly proof: Document;
}

export class HoldingClient {
  readonly #key: string;
  #held: string | null = null;
  /** What it believes: leaf hash by leaf, row hash by position. */
  readonly #beliefs = new Map<string, string>();
  evidence: Evidence | null = null;
  believed = 0;
  refused = 0;

  constructor(key: string) {
    this.#key = key;
  }

  /** Size of the tree that it holds a head of. */
  get size(): number {
    return this.#held === null ? 0 : sizeOf(this.#held);
  }

  /** Throws when it would have to believe two things at once: then the verifier has failed. */
  receive(document: Document): void {
    const proof = Buffer.from(JSON.stringify(document));
    const head = this.#held === null ? null : Buffer.from(this.#held);
    if (verifierSays({ proof, key: this.#key, head }).proven === null) {
      this.refused++;
      this.#accuse(document, proof);
      return;
    }
    this.believed++;
    this.#believe(`leaf ${document.leaf_index}`, document['leaf_hash'] as string);
    if (document.row) this.#believe(`position ${document.position}`, document.row['row_hash'] as string);
    this.#believe(`root ${document.tree_size}`, document['root_hash'] as string);
    this.#held = document.checkpoint;
  }

  #believe(place: string, value: string): void {
    const before = this.#beliefs.get(place);
    if (before !== undefined && before !== value) throw new Error(`${place} was ${before} and is ${value} now`);
    this.#beliefs.set(place, value);
  }

  /** A proof that holds by itself and not beside the held head shows that the key has signed two histories. */
  #accuse(document: Document, proof: Buffer): void {
    if (this.evidence !== null || this.#held === null) return;
    const evidence = { held: this.#held, proof: document };
    if (verifierSays({ proof, key: this.#key, head: null }).proven !== null && convicts(evidence, this.#key))
      this.evidence = evidence;
  }
}

/** Whether a third person who has the log's key must conclude that it signed two histories. */
export function convicts({ held, proof }: Evidence, key: string): boolean {
  const genuine = (document: Document, head: string | null): boolean =>
    verifierSays({ proof: Buffer.from(JSON.stringify(document)), key, head: head === null ? null : Buffer.from(head) }).proven !==
    null;
  // The held note must be genuine too: a note that is refused for itself accuses nobody.
  const why = verifierSays({ proof: Buffer.from(JSON.stringify(proof)), key, head: Buffer.from(held) }).why;
  if (!genuine(proof, null) || !why.includes('KEEP BOTH FILES')) return false;
  const rootOf = held.split('\n')[2];
  if (sizeOf(held) === proof.tree_size) return rootOf !== proof['root_hash'];
  return proof.consistency?.first === sizeOf(held) && rootOf !== proof.consistency.first_root_hash;
}

const historySize = 60;

export class LyingServer {
  readonly key: string;
  readonly #honest: ProofWorld;
  /** Histories that part from the honest one at different places; one of them only rewrites a row. */
  readonly #others: readonly ProofWorld[];
  readonly #said: Document[] = [];
  readonly #dice: Dice;
  #grown = 1;

  private constructor(honest: ProofWorld, others: readonly ProofWorld[], dice: Dice) {
    this.#honest = honest;
    this.#others = others;
    this.key = honest.key;
    this.#dice = dice;
  }

  static async histories(): Promise<readonly ProofWorld[]> {
    const truth = words(historySize);
    const forks = [5, 30, 50].map((at) => [...truth.slice(0, at), ...words(historySize - at, `fork ${at} `)]);
    const rewritten = truth.map((word, i) => (i === 20 ? 'rewritten' : word));
    return Promise.all([truth, ...forks, rewritten].map((history) => ProofWorld.of(history, 'lying')));
  }

  static over([honest, ...others]: readonly ProofWorld[], seed: number): LyingServer {
    return new LyingServer(honest!, others, new Dice(seed));
  }

  /** The truth about something, proven from the head that the client holds. */
  async tell(held: number): Promise<Document> {
    if (this.#grown < this.#honest.size && this.#dice.below(3) === 0) this.#grown++;
    this.#grown = Math.max(this.#grown, held);
    return this.#remember(await this.#proof(this.#honest, this.#grown, held));
  }

  /** Anything but. */
  async lie(held: number): Promise<Document> {
    const dice = this.#dice;
    const other = dice.of(this.#others);
    const size = Math.max(held, this.#grown);
    const truth = await this.#proof(this.#honest, size, held);
    switch (dice.below(9)) {
      case 0: // Another history, from a head of the same size as the client's.
        return this.#remember(await this.#proof(other, size, held));
      case 1: // Rolled back.
        return this.#proof(this.#honest, 1 + dice.below(size), 0);
      case 2: // What it said to somebody before.
        return this.#said.length === 0 ? truth : dice.of(this.#said);
      case 3: // The path of one tree under the head of another.
        return { ...truth, ...head(await this.#proof(other, size, held)) };
      case 4: // One tree's entry, another's growth.
        return mixed(await this.#proof(other, size, held), truth, 'consistency');
      case 5: // Another history, grown from the true head by signature alone.
        return this.#resigned({
          ...(await this.#proof(other, size, held)),
          ...(truth.consistency ? { consistency: truth.consistency } : {}),
        });
      case 6: // A true proof with a row of another history.
        return mixed(truth, await this.#proof(other, size, held), 'row');
      case 7: // The root that its forged path would need, signed.
        return this.#resigned({ ...truth, inclusion_path: (await this.#proof(other, size, held)).inclusion_path });
      default:
        return this.#garbled(truth);
    }
  }

  async #proof(world: ProofWorld, size: number, held: number): Promise<Document> {
    const dice = this.#dice;
    const leaf = dice.below(size);
    const keys = world.rows[leaf]!;
    const row = keys.length > 0 && dice.below(3) > 0 ? { row: dice.of(keys) } : {};
    const from = held > 0 && held <= size ? { from: held } : {};
    return world.prove({ leaf, treeSize: size, ...row, ...from });
  }

  /** The log's own key signs whatever root the document claims. */
  #resigned(document: Document): Document {
    const root = Buffer.from(document['root_hash'] as string, 'base64');
    return { ...document, checkpoint: signCheckpoint(origin, { size: document.tree_size, root }, this.#honest.signer) };
  }

  #garbled(document: Document): Document {
    const dice = this.#dice;
    const name = dice.of(Object.keys(document));
    const value = document[name];
    if (typeof value === 'number') return { ...document, [name]: value + 1 };
    if (typeof value === 'string') return { ...document, [name]: `${value.slice(0, -2)}A=` };
    if (Array.isArray(value)) return { ...document, [name]: value.slice(1) };
    return { ...document, [name]: undefined };
  }

  #remember(document: Document): Document {
    if (this.#said.length < 64) this.#said.push(document);
    else this.#said[this.#dice.below(64)] = document;
    return document;
  }
}

const head = ({ tree_size, checkpoint, root_hash }: Document): object => ({ tree_size, checkpoint, root_hash });

const mixed = (document: Document, other: Document, part: 'row' | 'consistency'): Document => {
  const { [part]: _, ...rest } = document;
  return { ...rest, ...(other[part] === undefined ? {} : { [part]: other[part] }) } as Document;
};

function sizeOf(note: string): number {
  return Number(note.split('\n')[1]);
}

export interface LyingTally {
  steps: number;
  believed: number;
  refused: number;
  clients: number;
  convicted: number;
}

/** A new client now and then; each meets the truth and lies in turn. Throws with seed and step when one is deceived. */
export async function runLyingServer(
  histories: readonly ProofWorld[],
  seed: number,
  steps: number,
  lies = true,
): Promise<LyingTally> {
  const server = LyingServer.over(histories, seed);
  const dice = new Dice(seed ^ 0x5eed);
  const sum: LyingTally = { steps: 0, believed: 0, refused: 0, clients: 0, convicted: 0 };
  let client = new HoldingClient(server.key);
  const leave = (): void => {
    sum.believed += client.believed;
    sum.refused += client.refused;
    sum.clients++;
    if (client.evidence !== null) {
      if (!convicts(client.evidence, server.key)) throw new Error(`seed ${seed}: evidence that does not convict`);
      sum.convicted++;
    }
  };
  for (; sum.steps < steps; sum.steps++) {
    if (dice.below(150) === 0) {
      leave();
      client = new HoldingClient(server.key);
    }
    try {
      client.receive(lies && dice.below(2) === 0 ? await server.lie(client.size) : await server.tell(client.size));
    } catch (cause) {
      throw new Error(`seed ${seed}, step ${sum.steps}: the client was deceived`, { cause });
    }
  }
  leave();
  return sum;
}
