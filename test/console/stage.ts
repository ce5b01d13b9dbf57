/** The demonstration in one process, and a browser that looks at it and notes whatever goes wrong. */
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { openDemo } from '../../src/cli/demo-store.ts';
import { openHttpDoor } from '../../src/cli/serve.ts';
import { systemClock, systemRandom } from '../../src/clock.ts';
import { loadSettings } from '../../src/config.ts';
import { doorStatuses } from '../../src/doors/doors.ts';
import type { HttpDoor } from '../../src/doors/http/server.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { Service } from '../../src/service.ts';

export const adminSecret = 'admin-secret-of-the-stage';

const candidates = [process.env['CHROMIUM'], '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** null where no browser is installed. */
export const browserPath = candidates.find((path) => path !== undefined && existsSync(path)) ?? null;

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: browserPath!, args: ['--no-sandbox', '--disable-gpu'] });

export class Stage {
  readonly service: Service;
  readonly door: HttpDoor;
  /** Opens the console once, as administrator and curator. */
  readonly link: string;

  private constructor(service: Service, door: HttpDoor, link: string) {
    this.service = service;
    this.door = door;
    this.link = link;
  }

  static async open(): Promise<Stage> {
    const env = {
      SERVICE_IN_MEMORY: 'true',
      SERVICE_PORT: '0',
      SERVICE_ADMIN_BIND: '127.0.0.1:0',
      SERVICE_ADMIN_TOKEN: adminSecret,
      SERVICE_DEMO_MODE: 'true',
      SERVICE_QUERY_QUOTA: '1000000000',
    };
    const settings = loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });
    const service = await Service.open({
      settings,
      disk: new MemoryDisk(),
      clock: systemClock,
      random: systemRandom,
      version: '2.4.1',
      say: () => undefined,
    });
    const door = await openHttpDoor(service, settings, () => doorStatuses(settings));
    return new Stage(service, door, (await openDemo(service, door))!);
  }

  /** A request of the administrator. */
  async admin(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const headers = { authorization: `Bearer ${adminSecret}`, 'content-type': 'application/json' };
    const response = await fetch(this.door.adminUrl + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return (await response.json()) as Record<string, unknown>;
  }

  async close(): Promise<void> {
    const stopped = this.door.stop();
    await this.service.close();
    await stopped;
  }
}

/** What a page did that it must not: errors, violations of its policy, requests to another origin, failed loads. */
export function watchPage(page: Page, origin: string): string[] {
  const wrong: string[] = [];
  page.on('console', (message) => {
    // A refused statement is an answer; the browser notes it as a failed load.
    if (['error', 'warning'].includes(message.type()) && !/status of 4\d\d/.test(message.text())) wrong.push(message.text());
  });
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !/^(data|blob):/.test(request.url())) wrong.push(`asks ${request.url()}`);
  });
  return wrong;
}

export async function signedIn(page: Page, stage: Stage): Promise<void> {
  await page.goto(stage.link);
  await page.waitForSelector('section[aria-label=stories] a');
}

/** Addresses of the stories, in their order. */
export const storiesOf = (page: Page): Promise<string[]> =>
  page.$$eval('section[aria-label=stories] a', (links) => links.map((each) => each.getAttribute('href')!));

export const hrefOf = (view: string, params: Readonly<Record<string, string>> = {}): string =>
  `#/${view}?${new URLSearchParams(params).toString()}`;

/** By its hash alone: a page that loads anew would sign in anew. */
export async function show(page: Page, href: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(href)}`);
}
