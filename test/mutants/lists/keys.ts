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
    find: 'if (keysWrite) await keysWrite;',
    replace: 'keysWrite?.catch(ignoreOutcome);',
    killedBy: [...logCrash, ...unit],
  },
  {
    name: 'keys: new keys are written and not fsynced',
    file: 'src/log/keys/subject-keys.ts',
    find: '      await shardFile.sync();\n      unwrittenShard.end',
    replace: '      unwrittenShard.end',
    killedBy: crash,
  },
  {
    name: 'keys: what is on no disk yet after a kill counts as durable',
    file: 'src/log/keys/subject-keys.ts',
    find: 'if (shardContent.unconfirmed) this.#unwrittenShards.add(loadedShard);',
    replace: '',
    killedBy: crash,
  },
  {
    name: 'keys: a destroyed key stays in its file',
    file: 'src/log/keys/subject-keys.ts',
    find: 'for (const wipedShard of wipedShards) if (wipedShard.stale) await this.#rewriteShard(wipedShard);',
    replace: '',
    killedBy: [...crash, ...unit],
  },
  {
    name: 'keys: a lost key counts as destroyed',
    file: 'src/log/keys/subject-keys.ts',
    find: 'if (this.#shardsOfTombstones.has(id)) return null;\n      throw lostSubjectKeyError(id);',
    replace: 'return null;',
    killedBy: unit,
  },
  {
    name: 'keys: an erased subject is sealed under what is kept ready',
    file: 'src/log/keys/subject-keys.ts',
    find: '      wipedShards.add(this.#shardsOfTombstones.get(id)!);\n    }\n    this.#recentKeys.clear();',
    replace: '      wipedShards.add(this.#shardsOfTombstones.get(id)!);\n    }',
    killedBy: unit,
  },
  {
    name: 'keys: a retired key goes on being used',
    file: 'src/log/keys/subject-key-table.ts',
    find: 'return this.#retiredSlots.has(keySlot) ? -1 : keySlot;',
    replace: 'return keySlot;',
    killedBy: unit,
  },
  {
    name: 'keys: a torn end is taken whatever says that it was written',
    file: 'src/log/keys/subject-shard.ts',
    find: 'if (laterBlockOffset !== null)',
    replace: 'if (laterBlockOffset === shardBytes.length)',
    killedBy: unit,
  },
  {
    name: 'keys: a block is not bound to its place',
    file: 'src/log/keys/subject-shard.ts',
    find: ' || shardBytes.readBigUInt64LE(blockOffset + 16) !== BigInt(blockOffset)',
    replace: '',
    killedBy: unit,
  },
  {
    name: 'rotation: the new key is used before it is on disk',
    file: 'src/log/keys/keys.ts',
    find: '    const previousDataKey = this.activeDataKey;\n',
    replace: '    const previousDataKey = this.activeDataKey;\n    this.#openDataKeys.use(dataKeyId, newDataKey);\n',
    killedBy: rotation,
  },
  {
    name: 'escrow: pieces are bound to nothing',
    file: 'src/log/keys/escrow.ts',
    find: 'shardNumber[4] = isLastPiece ? 1 : 0;',
    replace: 'shardNumber.fill(0);',
    killedBy: escrow,
  },
];
