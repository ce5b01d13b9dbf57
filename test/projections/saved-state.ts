/** Checkpoints and segment files of a test: a disk, keys, and a log that says whatever a test wants of it. */
import { ColumnMemory } from '../../src/log/values/column-memory.ts';
import type { DerivedHome } from '../../src/log/blobs/derived-file.ts';
import { openKeyring } from '../../src/log/keys/keys.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import type { SavedLog } from '../../src/log/files/saved-log.ts';
import { captureCheckpoint, Checkpoint, writeCheckpoint } from '../../src/projections/checkpoint.ts';
import type { Projector } from '../../src/projections/projector.ts';
import type { RowStorageOptions } from '../../src/projections/rows/tables/row-storage.ts';
import { ColumnStore } from '../../src/projections/rows/store/column-store.ts';
import { SeededRandom } from '../log/world.ts';

export class SavedState {
  readonly disk = new MemoryDisk();
  readonly said: string[] = [];
  home!: DerivedHome;

  static async make(): Promise<SavedState> {
    const made = new SavedState();
    await made.disk.makeDirectory('/d/p');
    const random = new SeededRandom('saved');
    const keyring = await openKeyring({ disk: made.disk, random, directory: '/d', kek: new Uint8Array(32).fill(7) });
    made.home = { disk: made.disk, random, keyring, directory: '/d/p', logId: 'log-1', yieldTurn: () => Promise.resolve() };
    return made;
  }

  columns(
    budgetBytes: number,
    damaged: () => void = () => undefined,
    lull: ((signal: AbortSignal) => Promise<void>) | null = null,
  ): ColumnStore {
    const store = new ColumnStore({
      budgetBytes,
      hydrateMax: 4,
      compactMax: 2,
      say: (line) => this.said.push(line),
      defer: (task) => void setImmediate(task),
      onDamaged: damaged,
      ...(lull && { lull }),
    });
    store.readFrom(this.home);
    store.begin(this.home);
    return store;
  }

  /** Rows in many segments, hardly any of which may be in memory; what left it is overwritten. */
  resting(budgetBytes = 0, segmentRows = 3): RowStorageOptions & { readonly store: ColumnStore } {
    return {
      store: this.columns(budgetBytes),
      memory: new ColumnMemory({ memoryBytes: 16 * 2 ** 20, poison: true }),
      settings: { segmentRows },
    };
  }

  /** `meanwhile` runs between the turn that it is of and the turns in which it is written. */
  async save(projector: Projector, store: ColumnStore | null = null, meanwhile: () => void = () => undefined): Promise<void> {
    await store?.whenIdle();
    const generation = store?.generation ?? 0;
    const captured = captureCheckpoint(projector);
    const { leaves } = captured;
    meanwhile();
    const log: SavedLog = { logId: 'log-1', leaves, leafHash: `hash ${leaves}`, bytes: new Uint8Array(10), blobs: [] };
    await writeCheckpoint(this.home, captured, log);
    await store?.collect(generation, captured.files);
  }

  /** Throws what refuses it. */
  async restore(projector: Projector): Promise<Checkpoint> {
    const checkpoint = await Checkpoint.open(this.home);
    if (!checkpoint) throw new Error('there is none');
    try {
      await checkpoint.restore(projector);
    } finally {
      await checkpoint.closeState();
    }
    return checkpoint;
  }

  /** Everything that was saved, in the clear. */
  async plain(): Promise<string> {
    const { DerivedFile } = await import('../../src/log/blobs/derived-file.ts');
    let text = '';
    for (const name of await this.disk.list('/d/p')) {
      const file = (await DerivedFile.open(this.home, name))!;
      for (const chunk of file.chunks()) text += Buffer.from(file.readNow(chunk)).toString('latin1');
    }
    return text;
  }
}
