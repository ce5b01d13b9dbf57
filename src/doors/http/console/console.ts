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

  constructor(clock: Clock, random: Random, loadConsoleFiles: () => ConsoleFiles | null) {
    this.sessions = new BrowserSessions(clock, random);
    this.#files = loadConsoleFiles;
  }

  /** Throws REL_NOT_IMPLEMENTED where this build has no pages. */
  page(consoleMountPath: string): ConsolePage {
    let consolePage = this.#pages.get(consoleMountPath);
    if (consolePage === undefined)
      this.#pages.set(consoleMountPath, (consolePage = makePage(this.#buildFiles(), consoleMountPath)));
    return consolePage;
  }

  file(consoleFileName: string): Uint8Array {
    const consoleFileBytes = this.#buildFiles().files.get(consoleFileName);
    if (consoleFileBytes === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such file');
    return consoleFileBytes;
  }

  #buildFiles(): ConsoleFiles {
    const consoleFiles = this.#files();
    if (consoleFiles === null) throw new ServiceError('REL_NOT_IMPLEMENTED', 'this build has no pages: npm run build makes them');
    return consoleFiles;
  }
}
