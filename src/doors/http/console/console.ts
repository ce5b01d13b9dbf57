/** The web console of the door: its pages and files, its browser sessions, and the way from a session to the door's routes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Random } from '../../../clock.ts';
import { ServiceError } from '../../../errors.ts';
import { makePage, type ConsoleFiles, type ConsolePage } from './pages.ts';
import { BrowserSessions } from './browser-sessions.ts';

/** A listener's routes, as for a request that came to it. */
export type Routing = (request: IncomingMessage, response: ServerResponse) => void;

export class WebConsole {
  readonly sessions: BrowserSessions;
  /** Set by the door once its listeners are made. */
  data: Routing | null = null;
  admin: Routing | null = null;
  readonly #files: () => ConsoleFiles | null;
  readonly #pages = new Map<string, ConsolePage>();

  constructor(clock: Clock, random: Random, files: () => ConsoleFiles | null) {
    this.sessions = new BrowserSessions(clock, random);
    this.#files = files;
  }

  /** Throws REL_NOT_IMPLEMENTED where this build has no pages. */
  page(mount: string): ConsolePage {
    let page = this.#pages.get(mount);
    if (page === undefined) this.#pages.set(mount, (page = makePage(this.#buildFiles(), mount)));
    return page;
  }

  file(name: string): Uint8Array {
    const bytes = this.#buildFiles().files.get(name);
    if (bytes === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such file');
    return bytes;
  }

  #buildFiles(): ConsoleFiles {
    const files = this.#files();
    if (files === null) throw new ServiceError('REL_NOT_IMPLEMENTED', 'this build has no pages: npm run build makes them');
    return files;
  }
}
