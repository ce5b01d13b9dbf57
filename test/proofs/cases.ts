/** Good and bad proofs by the thousand, each with what must be said of it. Deterministic: a seed gives the same cases. */
import { createHash } from 'node:crypto';
import { keyHash, noteSigner, signCheckpoint } from '../../src/log/tree/checkpoint-note.ts';
import { origin } from '../log/world.ts';
import { type Document, ProofWorld, words } from './world.ts';

export interface Case {
  readonly name: string;
  readonly proof: Buffer;
  readonly key: string;
  readonly head: Buffer | null;
  readonly good: boolean;
}

/** Numbers from a seed, for choices only. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * n);
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

export class Cases {
  readonly #world: ProofWorld;
  /** Shares its first 150 entries with the world, and its key: what a log that forked its history would be. */
  readonly #twin: ProofWorld;
  readonly #stranger = noteSigner(new Uint8Array(32).fill(9));

  private constructor(world: ProofWorld, twin: ProofWorld) {
    this.#world = world;
    this.#twin = twin;
  }

  static async open(): Promise<Cases> {
    const twin = [...words(149), ...words(151, 'forged')];
    return new Cases(await ProofWorld.of(words(299)), await ProofWorld.of(twin));
  }

  /** All sizes, all leaves, all earlier sizes up to `sizeMax`; then rows, branches and held heads here and there. */
  async *good(sizeMax: number, more: number, seed = 1): AsyncGenerator<Case> {
    for (let size = 1; size <= sizeMax; size++) {
      for (let leaf = 0; leaf < size; leaf++) yield this.#case(`leaf ${leaf} of ${size}`, await this.#prove(leaf, size));
      for (let from = 1; from <= size; from++) {
        const grown = await this.#world.prove({ leaf: size - 1, treeSize: size, from });
        yield this.#case(`${from} in ${size}`, grown, { head: await this.#world.headAt(from) });
      }
    }
    const dice = new Dice(seed);
    for (let i = 0; i < more; i++) yield await this.#any(dice, `good ${i}`);
  }

  /** One mistake each, of a kind and in a place that the dice choose. */
  async *bad(count: number, seed = 2): AsyncGenerator<Case> {
    const dice = new Dice(seed);
    const kinds = Object.entries(this.#mistakes());
    for (let i = 0; i < count; i++) {
      const [name, mistake] = kinds[i % kinds.length]!;
      const whole = await this.#any(dice, `${name} ${i}`);
      yield { ...whole, ...(await mistake(dice, JSON.parse(whole.proof.toString()) as Document, whole)), good: false };
    }
  }

  /** What looks odd and is fine. */
  async *tolerated(): AsyncGenerator<Case> {
    const document = await this.#world.prove({ leaf: 7, treeSize: 20, from: 5, row: this.#world.rows[7]![0]! });
    const held = Buffer.from(await this.#world.headAt(5));
    const witness = `— witness.test ${Buffer.concat([Buffer.from('abcd'), Buffer.alloc(64, 3)]).toString('base64')}\n`;
    const namesake = `— ${origin} ${Buffer.concat([keyHash(origin, this.#stranger.publicKey), Buffer.alloc(64)]).toString('base64')}\n`;
    const [text, signature] = document.checkpoint.split('\n\n') as [string, string];
    const variants: readonly [string, object][] = [
      ['a signature of a witness that nobody knows', { checkpoint: document.checkpoint + witness }],
      ['the witness first', { checkpoint: `${text}\n\n${witness}${signature}` }],
      ['a bad signature of another key with this name', { checkpoint: document.checkpoint + namesake }],
      ['a good signature twice', { checkpoint: `${text}\n\n${signature}${signature}` }],
      ['no position', { position: null, row: undefined }],
    ];
    for (const [name, change] of variants) yield { ...this.#case(name, { ...document, ...change }), head: held };
    yield this.#case('a tree of one entry, made by hand', await this.#tiny(Buffer.alloc(16, 5), 0));
    yield this.#case('white space', document, { text: JSON.stringify(document, null, '\t') });
    yield this.#case('the key alone', document, {
      key: Buffer.from(this.#world.key.split('+').slice(2).join('+'), 'base64').subarray(1).toString('hex'),
    });
    yield this.#case('the very head', document, { head: await this.#world.headAt(20) });
  }

  /** Every bit of the file, one at a time. */
  async *flips(of: 'row' | 'branch', every = 1, first = 0): AsyncGenerator<Case> {
    const { log } = this.#world;
    const leaf = of === 'row' ? 8 : 4;
    const row = of === 'row' ? { row: this.#world.rows[leaf]![1]! } : {};
    const place = of === 'branch' ? { branch: [...this.#world.forks.keys()][0]! } : { leaf };
    const document = await this.#world.prove({ ...place, ...row, treeSize: 13, from: 6 });
    const proof = Buffer.from(JSON.stringify(document));
    for (let bit = first % every; bit < proof.length * 8; bit += every) {
      const changed = Buffer.from(proof);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      yield { name: `${of} bit ${bit}`, proof: changed, key: log.proofs.key, head: null, good: false };
    }
  }

  #prove(leaf: number, treeSize: number): Promise<Document> {
    return this.#world.prove({ leaf, treeSize });
  }

  async #any(dice: Dice, name: string): Promise<Case> {
    const treeSize = 2 + dice.below(this.#world.size - 2);
    const leaf = dice.below(treeSize);
    const from = 1 + dice.below(treeSize);
    const keys = this.#world.rows[leaf]!;
    const branch = [...this.#world.forks].find(([, position]) => position >= 0 && dice.below(12) === 0)?.[0];
    const fork = branch === undefined ? null : await this.#world.prove({ branch });
    const request =
      fork !== null && fork.leaf_index < treeSize
        ? { branch: branch! }
        : { leaf, ...(keys.length > 0 && dice.below(4) > 0 ? { row: dice.of(keys) } : {}) };
    const document = await this.#world.prove({ ...request, treeSize, from });
    return this.#case(name, document, { head: dice.below(2) === 0 ? await this.#world.headAt(from) : null });
  }

  #case(name: string, document: object, given: { head?: string | null; text?: string; key?: string } = {}): Case {
    return {
      name,
      proof: Buffer.from(given.text ?? JSON.stringify(document)),
      key: given.key ?? this.#world.key,
      head: given.head === undefined || given.head === null ? null : Buffer.from(given.head),
      good: true,
    };
  }

  /** A log of one entry of one row, with this salt, whose leaf gives itself this number: signed as if all were well. */
  async #tiny(salt: Buffer, leafIndex: number): Promise<Document> {
    const document = await this.#world.prove({ leaf: 13, row: this.#world.rows[13]![0]!, treeSize: 14 });
    const { row } = document;
    const rowHash = leafHash(Buffer.concat([salt, Buffer.from(row!['row'] as string, 'base64')]));
    const leaf = Buffer.from(document['leaf'] as string, 'base64');
    leaf.writeBigUInt64LE(BigInt(leafIndex), 2);
    Buffer.from(rowHash, 'base64').copy(leaf, 62);
    const root = leafHash(leaf);
    const head = { size: 1, root: Buffer.from(root, 'base64') };
    return {
      ...document,
      leaf_index: 0,
      leaf: leaf.toString('base64'),
      leaf_hash: root,
      tree_size: 1,
      root_hash: root,
      inclusion_path: [],
      checkpoint: signCheckpoint(origin, head, this.#world.signer),
      row: { ...row, salt: salt.toString('base64'), row_hash: rowHash, rows_root: rowHash, path: [] },
    };
  }

  #mistakes(): Record<string, (dice: Dice, document: Document, whole: Case) => Partial<Case> | Promise<Partial<Case>>> {
    const changed = (document: object): Partial<Case> => ({ proof: Buffer.from(JSON.stringify(document)) });
    const edit =
      (change: (document: Document, dice: Dice) => void) =>
      (dice: Dice, document: Document): Partial<Case> => {
        change(document, dice);
        return changed(document);
      };
    const hostile = [-1, 0.5, '1', null, true, [], {}, 1e300, 9_007_199_254_740_992, '', undefined, -0.5];
    const pathOf = (document: Document, dice: Dice): string[] =>
      dice.of([document.inclusion_path, document.consistency!.path, document.row?.path ?? document.inclusion_path]);
    const junk = (dice: Dice): string =>
      createHash('sha256')
        .update(`junk ${dice.below(1e9)}`)
        .digest('base64');
    const resign = (document: Document, size: number, root: string, name = origin, by = this.#world): void => {
      // With the log's own key: what the log could do, not what a thief could.
      document.checkpoint = signCheckpoint(name, { size, root: Buffer.from(root, 'base64') }, by.signer);
    };
    return {
      'another index': edit((document, dice) => void (document.leaf_index += dice.of([1, -1, 2, 256]))),
      'another size': edit((document, dice) => void (document.tree_size += dice.of([1, -1, 7]))),
      'size 0': edit((document) => void (document.tree_size = 0)),
      'size 0, signed': edit((document) => {
        document.tree_size = 0;
        document['root_hash'] = createHash('sha256').digest('base64');
        resign(document, 0, document['root_hash'] as string);
      }),
      'another position': edit((document, dice) => {
        document.position = (document.position ?? 0) + dice.of([40, 1e6]);
      }),
      'a sibling too many': edit((document, dice) => void pathOf(document, dice).push(junk(dice))),
      'a sibling too few': edit((document, dice) => {
        const path = pathOf(document, dice);
        if (path.pop() === undefined) path.push(junk(dice));
      }),
      'an endless path': edit((document, dice) => {
        const path = pathOf(document, dice);
        while (path.length < 64 + dice.below(3)) path.push(junk(dice));
      }),
      'siblings swapped': edit((document, dice) => {
        const path = pathOf(document, dice);
        if (path.length < 2) path.push(junk(dice));
        else path.push(...path.splice(0, 1));
      }),
      'a changed sibling': edit((document, dice) => {
        const path = pathOf(document, dice);
        if (path.length === 0) path.push(junk(dice));
        else path[dice.below(path.length)] = junk(dice);
      }),
      'a short hash': edit((document, dice) => {
        const path = pathOf(document, dice);
        path[0] = Buffer.from(junk(dice), 'base64')
          .subarray(dice.of([1, 16]))
          .toString('base64');
      }),
      'base64 of another kind': edit((document, dice) => {
        const text = junk(dice);
        document['root_hash'] = dice.of([
          text.slice(0, -1),
          `${text}=`,
          ` ${text}`,
          text.replace(/.=$/, '9='),
          'é'.repeat(44),
          text.replaceAll('A', '-'),
        ]);
      }),
      'a changed leaf': edit((document, dice) => {
        const leaf = Buffer.from(document['leaf'] as string, 'base64');
        leaf[dice.below(leaf.length)]! ^= 1 << dice.below(8);
        document['leaf'] = leaf.toString('base64');
        if (dice.below(2) === 0) document['leaf_hash'] = leafHash(leaf);
      }),
      'an inner node for a leaf': edit((document) => {
        const path = document.inclusion_path;
        if (path.length === 0) return void (document['leaf'] = '');
        document['leaf'] = Buffer.concat([
          Buffer.of(1),
          Buffer.from(document['leaf_hash'] as string, 'base64'),
          Buffer.from(path[0]!, 'base64'),
        ]).toString('base64');
        document.inclusion_path = path.slice(1);
      }),
      'a changed row': edit((document, dice) => {
        const { row } = document;
        if (!row)
          return void (document.row = {
            pk: 'x',
            row_hash: junk(dice),
            rows_root: junk(dice),
            path: [],
            salt: 'AAAA',
            row: 'AQ==',
          });
        const bytes = Buffer.from(row['row'] as string, 'base64');
        bytes[dice.below(bytes.length)]! ^= 1 << dice.below(8);
        row['row'] = bytes.toString('base64');
        if (dice.below(2) === 0) row['row_hash'] = leafHash(Buffer.concat([Buffer.from(row['salt'] as string, 'base64'), bytes]));
      }),
      'a salt that takes bytes of the row': edit((document) => {
        const { row } = document;
        if (!row) return void (document['hash_alg'] = 'sha-1');
        const bytes = Buffer.from(`${row['salt'] as string}`, 'base64');
        row['row'] = Buffer.concat([bytes.subarray(8), Buffer.from(row['row'] as string, 'base64')]).toString('base64');
        row['salt'] = bytes.subarray(0, 8).toString('base64');
      }),
      'another key of the row': edit((document) => {
        if (document.row) document.row['pk'] = 'somebody else';
        else document['tree_alg'] = 'RFC6962';
      }),
      'another branch': edit((document, dice) => {
        const { branch } = document;
        if (!branch)
          return void (document.branch = {
            name: 'b',
            source: 'main',
            shares: 'everything',
            statement: '',
            fork_position: 0,
            fork: { ...document.consistency! },
          });
        const field = dice.of(['name', 'source', 'shares', 'statement']);
        branch[field] = `${branch[field] as string}${dice.of(['x', '\n', '"'])}`;
      }),
      'a fork elsewhere': edit((document) => {
        if (document.branch) document.branch.fork = { ...document.consistency!, first: document.branch.fork.first - 1 };
        else document.consistency!.first += 1;
      }),
      'a salt of another length, in a tree signed over it': async (dice) =>
        changed(await this.#tiny(Buffer.alloc(dice.of([0, 8, 15, 17, 32]), 5), 0)),
      'a leaf of another place, in a tree signed over it': async (dice) =>
        changed(await this.#tiny(Buffer.alloc(16, 5), 1 + dice.below(9))),
      'growth to another size': edit((document) => void (document.consistency!.second -= 1)),
      'growth from another root': edit((document, dice) => void (document.consistency!.first_root_hash = junk(dice))),
      'a number that is none': edit((document, dice) => {
        document[dice.of(['leaf_index', 'tree_size'])] = dice.of(hostile.filter((value) => value !== document.leaf_index));
      }),
      'a text that is none': edit((document, dice) => {
        document[dice.of(['origin', 'leaf', 'leaf_hash', 'root_hash', 'checkpoint', 'inclusion_path', 'consistency'])] = dice.of(
          hostile.filter((value) => value !== undefined && value !== ''),
        );
      }),
      'a member that is missing': edit((document, dice) => {
        delete document[dice.of(Object.keys(document).filter((name) => !['consistency', 'row', 'branch'].includes(name)))];
      }),
      'something pruned': edit((document, dice) => void (document['minimum_index'] = 1 + dice.below(9))),
      'a member twice': (dice, document) => {
        const text = JSON.stringify(document);
        const [name, value] = dice.of(Object.entries(document));
        const member = `${dice.of([JSON.stringify(name), `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"`])}:${JSON.stringify(value)}`;
        return { proof: Buffer.from(dice.of([`{${member},${text.slice(1)}`, `${text.slice(0, -1)},${member}}`])) };
      },
      'a member that nobody knows': edit((document, dice) => {
        const at: Record<string, unknown> = dice.of([
          document,
          document.consistency!,
          document.row ?? document,
          document.branch ?? document,
        ]);
        at[dice.of(['later', '__proto__x', 'toString', 'Leaf'])] = dice.of([1.5, null, [], { a: '"x":' }]);
      }),
      'a file that ends early': (dice, _, { proof }) => ({ proof: proof.subarray(0, dice.below(proof.length)) }),
      'a file that goes on': (dice, _, { proof }) => ({
        proof: Buffer.concat([proof, Buffer.from(dice.of(['{}', 'x', ',', '\u0000', '}', '﻿']))]),
      }),
      'no JSON': (dice) => ({
        proof: Buffer.from(
          dice.of([
            '',
            '[]',
            'null',
            '1',
            '"x"',
            '{',
            '[['.repeat(4000),
            '{"a":'.repeat(4000),
            '\ufeff{}',
            "{'a':1}",
            '{"a":01}',
            'NaN',
          ]),
        ),
      }),
      'no text': (_, document) => ({
        proof: Buffer.concat([Buffer.from(JSON.stringify(document).slice(0, -1)), Buffer.from(',"x":"\xff"}', 'latin1')]),
      }),
      'another origin': edit((document) => void (document['origin'] = `${origin}2`)),
      'a head in another name': edit((document) => {
        resign(document, document.tree_size, document['root_hash'] as string, 'other.test/log');
        document['origin'] = 'other.test/log';
      }),
      'a head of another key': edit((document) => {
        document.checkpoint = signCheckpoint(
          origin,
          { size: document.tree_size, root: Buffer.from(document['root_hash'] as string, 'base64') },
          this.#stranger,
        );
      }),
      'a bad signature beside a good one': edit((document) => {
        const id = keyHash(origin, this.#world.signer.publicKey);
        document.checkpoint += `— ${origin} ${Buffer.concat([id, Buffer.alloc(64, 1)]).toString('base64')}\n`;
      }),
      'a signature cut short': edit((document) => {
        const [text, line] = document.checkpoint.split('\n\n') as [string, string];
        const bytes = Buffer.from(line.trim().split(' ')[2]!, 'base64').subarray(0, -1);
        document.checkpoint = `${text}\n\n— ${origin} ${bytes.toString('base64')}\n`;
      }),
      'a changed bit of the signature': edit((document, dice) => {
        const [text, line] = document.checkpoint.split('\n\n') as [string, string];
        const bytes = Buffer.from(line.trim().split(' ')[2]!, 'base64');
        bytes[4 + dice.below(64)]! ^= 1 << dice.below(8);
        document.checkpoint = `${text}\n\n— ${origin} ${bytes.toString('base64')}\n`;
      }),
      'a head that is no note': edit((document, dice) => {
        const note = document.checkpoint;
        document.checkpoint = dice.of([
          '',
          '\n\n',
          note.slice(0, -1),
          `${note}\n`,
          note.replace('\n\n', '\n'),
          note.replace('\n', '\r\n'),
          note.replace('— ', '- '),
          `\n${note}`,
          note.replace('\n\n', '\nextension\n\n'),
          note.replace(/\n(\d)/, '\n0$1'),
          `${note}no signature\n`,
        ]);
      }),
      'a path of the twin': async (dice, document) => {
        const leaf = 150 + dice.below(100);
        const other = await this.#twin.prove({ leaf, treeSize: this.#twin.size });
        return changed({
          ...document,
          ...(await this.#prove(leaf, this.#world.size)),
          inclusion_path: other.inclusion_path,
          row: undefined,
          branch: undefined,
        });
      },
      'a head of the twin': async (dice, document) => {
        const size = 151 + dice.below(100);
        const { checkpoint } = await this.#twin.prove({ leaf: 3, treeSize: size });
        return changed({ ...(await this.#prove(document.leaf_index % size, size)), checkpoint });
      },
      'a held head of the twin': async (dice) => {
        const from = 151 + dice.below(100);
        const document = await this.#world.prove({ leaf: 3, from });
        return { ...changed(document), head: Buffer.from(await this.#twin.headAt(dice.of([from, this.#world.size]))) };
      },
      'a rollback': async (dice) => {
        const size = 2 + dice.below(200);
        return {
          ...changed(await this.#prove(dice.below(size), size)),
          head: Buffer.from(await this.#world.headAt(size + 1 + dice.below(50))),
        };
      },
      'a held head that nothing leads from': async (dice) => {
        const size = 100 + dice.below(100);
        return {
          ...changed(await this.#prove(dice.below(size), size)),
          head: Buffer.from(await this.#world.headAt(1 + dice.below(99))),
        };
      },
      'a held head that is no head': (dice) => ({ head: Buffer.from(dice.of(['', 'x', '\n\n', `${origin}\n1\n`])) }),
      'a key that is none': (dice) => ({
        key: dice.of([
          '',
          'x',
          '+',
          'a+b+c',
          this.#world.key.replace('+', '+0'),
          this.#world.key.slice(0, -4),
          `x${this.#world.key}`,
          'ab'.repeat(31),
          'zz'.repeat(32),
        ]),
      }),
      'another key': () => ({ key: Buffer.from(this.#stranger.publicKey).toString('hex') }),
    };
  }
}

function leafHash(bytes: Uint8Array): string {
  return createHash('sha256')
    .update(Buffer.concat([Buffer.of(0), bytes]))
    .digest('base64');
}
