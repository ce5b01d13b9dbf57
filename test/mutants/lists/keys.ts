/** Mistakes that would lose a key, keep one that was destroyed, or believe a file that is not what it was. */
import type { Mutant } from '../mutant.ts';

const crash = ['test/log/keys/subject-keys-crash.test.ts'];
const unit = ['test/log/keys/subject-keys.test.ts'];
const logCrash = ['test/log/subject-log-crash.test.ts'];
const rotation = ['test/log/keys/key-rotation.test.ts'];
const escrow = ['test/log/keys/escrow.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'keys: a frame is written before the keys of its rows are on disk',
    file: 'src/log/append/group-commit.ts',
    find: 'if (keys) await keys;',
    replace: 'keys?.catch(ignore);',
    killedBy: [...logCrash, ...unit],
  },
  {
    name: 'keys: new keys are written and not fsynced',
    file: 'src/log/keys/subject-keys.ts',
    find: '      await file.sync();\n      shard.end',
    replace: '      shard.end',
    killedBy: crash,
  },
  {
    name: 'keys: what is on no disk yet after a kill counts as durable',
    file: 'src/log/keys/subject-keys.ts',
    find: 'if (content.unconfirmed) this.#waiting.add(shard);',
    replace: '',
    killedBy: crash,
  },
  {
    name: 'keys: a destroyed key stays in its file',
    file: 'src/log/keys/subject-keys.ts',
    find: 'for (const shard of shards) if (shard.stale) await this.#writeAnew(shard);',
    replace: '',
    killedBy: [...crash, ...unit],
  },
  {
    name: 'keys: a lost key counts as destroyed',
    file: 'src/log/keys/subject-keys.ts',
    find: 'if (this.#tombstones.has(id)) return null;\n      throw lostKeyError(id);',
    replace: 'return null;',
    killedBy: unit,
  },
  {
    name: 'keys: an erased subject is sealed under what is kept ready',
    file: 'src/log/keys/subject-keys.ts',
    find: '      shards.add(this.#tombstones.get(id)!);\n    }\n    this.#recent.clear();',
    replace: '      shards.add(this.#tombstones.get(id)!);\n    }',
    killedBy: unit,
  },
  {
    name: 'keys: a retired key goes on being used',
    file: 'src/log/keys/subject-key-table.ts',
    find: 'return this.#retired.has(slot) ? -1 : slot;',
    replace: 'return slot;',
    killedBy: unit,
  },
  {
    name: 'keys: a torn end is taken whatever says that it was written',
    file: 'src/log/keys/subject-shard.ts',
    find: 'if (later !== null)',
    replace: 'if (later === bytes.length)',
    killedBy: unit,
  },
  {
    name: 'keys: a block is not bound to its place',
    file: 'src/log/keys/subject-shard.ts',
    find: ' || bytes.readBigUInt64LE(at + 16) !== BigInt(at)',
    replace: '',
    killedBy: unit,
  },
  {
    name: 'rotation: the new key is used before it is on disk',
    file: 'src/log/keys/keys.ts',
    find: '    const previous = this.activeDataKey;\n',
    replace: '    const previous = this.activeDataKey;\n    this.#dataKeys.use(number, key);\n',
    killedBy: rotation,
  },
  {
    name: 'escrow: pieces are bound to nothing',
    file: 'src/log/keys/escrow.ts',
    find: 'shardNumber[4] = last ? 1 : 0;',
    replace: 'shardNumber.fill(0);',
    killedBy: escrow,
  },
];
