/**
 * Openings of one seed's images, each done once. Most crash points leave an image that another one left too; what a log
 * makes of an image depends on nothing but the image, the state that it goes on from and the call that fails, so only the
 * comparison with what had been promised is done anew.
 */
import { createHash } from 'node:crypto';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import type { LogStore } from '../../src/log/log-store.ts';
import { crashImage, sameImage } from './crash-image.ts';
import { type DiskState, FaultyDisk, type Image, type Step } from './faulty-disk.ts';
import type { KeptState } from './history.ts';

/** From which a log goes on, or null: from the beginning. */
export type From = KeptState | null;

/** `read`: all entries are wanted too. */
export type Opener = (disk: FaultyDisk, from: From, read: boolean) => Promise<OpenedLog>;

export interface OpenedLog {
  readonly log: LogStore;
  readonly entries: readonly CommittedEntry[];
  /** Whether it went on from the state that it was given, or refused it. */
  readonly resumed: boolean;
}

export interface Opening {
  readonly opened: OpenedLog | null;
  /** Why it was not opened. */
  readonly error: unknown;
  readonly syncsAfterFailure: number;
  /** What a power cut right afterwards leaves. */
  readonly left: Image;
  /** Whether a power cut right afterwards loses nothing. */
  readonly settled: boolean;
}

export interface Recovery {
  readonly error: unknown;
  readonly steps: readonly Step[];
  /** The disk before each call that found it changed. */
  readonly points: readonly { readonly step: Step; readonly disk: DiskState }[];
}

export class Openings {
  readonly #open: Opener;
  readonly #openings = new Map<string, Promise<Opening>>();
  readonly #recoveries = new Map<string, Promise<Recovery>>();
  readonly #alarms = new Map<string, Promise<string | null>>();

  constructor(open: Opener) {
    this.#open = open;
  }

  /** Openings that were really done. */
  get count(): number {
    return this.#openings.size;
  }

  /** With an EIO at one call, if any. */
  open(image: Image, from: From, failing: Step | null = null): Promise<Opening> {
    const key = `${digestOf(image)} ${from?.digest} ${failing?.index}`;
    return once(this.#openings, key, async () => {
      const beforeStep = (step: Step) => {
        if (step.index !== failing?.index) return undefined;
        return { kind: 'error', code: 'EIO', bytes: step.bytes >> 1 } as const;
      };
      const disk = new FaultyDisk(failing ? { beforeStep } : {}, image);
      const { opened, error } = await this.#tried(disk, from, true);
      const left = crashImage(disk.state(), 'none');
      const settled = sameImage(left, disk.visible());
      return { opened, error, syncsAfterFailure: disk.syncsAfterFailure, left, settled };
    });
  }

  /** The same, call by call. */
  recovery(image: Image, from: From): Promise<Recovery> {
    return once(this.#recoveries, `${digestOf(image)} ${from?.digest}`, async () => {
      const points: { step: Step; disk: DiskState }[] = [];
      const steps: Step[] = [];
      let version = -1;
      const disk: FaultyDisk = new FaultyDisk(
        {
          beforeStep: (step) => {
            steps.push(step);
            if (disk.version === version) return undefined;
            version = disk.version;
            if (version > 0) points.push({ step, disk: disk.state() });
            return undefined;
          },
        },
        image,
      );
      const { error } = await this.#tried(disk, from, false);
      return { error, steps, points };
    });
  }

  /** What `verify` finds in an image. */
  alarm(image: Image, verify: (image: Image) => Promise<string | null>): Promise<string | null> {
    return once(this.#alarms, digestOf(image), () => verify(image));
  }

  async #tried(disk: FaultyDisk, from: From, read: boolean): Promise<{ opened: OpenedLog | null; error: unknown }> {
    try {
      return { opened: await this.#open(disk, from, read), error: null };
    } catch (error) {
      return { opened: null, error };
    }
  }
}

function once<T>(known: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  let value = known.get(key);
  if (!value) known.set(key, (value = make()));
  return value;
}

const digests = new WeakMap<Image, string>();

export function digestOf(image: Image): string {
  let digest = digests.get(image);
  if (digest === undefined) {
    const hash = createHash('sha256').update([...image.directories].sort().join('\n'));
    for (const path of [...image.files.keys()].sort()) {
      const bytes = image.files.get(path)!;
      hash.update(`\n${path}\n${bytes.length}\n`).update(bytes);
    }
    digests.set(image, (digest = hash.digest('base64')));
  }
  return digest;
}
