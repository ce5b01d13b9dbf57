/** `console:hostile`: values, names and addresses that attack; stolen cookies, other ports, frames; where a secret must not be. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { adminSecret, hrefOf, show, signedIn, type Stage } from './stage.ts';

const mark = 'window.__hit=1';
const shapes: readonly ((n: number) => string)[] = [
  (n) => `<img src=x onerror="${mark}" id=h${n}>`,
  (n) => `<script>${mark}</script>${n}`,
  (n) => `"><svg/onload=${mark}>${n}`,
  (n) => `javascript:${mark}//${n}`,
  (n) => `data:text/html,<script>${mark}</script>${n}`,
  (n) => `<iframe srcdoc="<script>parent.${mark}</script>">${n}`,
  (n) => `</style><style>*{background:url(https://evil.example/${n})}</style>`,
  (n) => `<a href="javascript:${mark}">${n}</a><base href="https://evil.example/">`,
  (n) => `{{constructor.constructor('${mark}')()}}${n}`,
  (n) => `=HYPERLINK("https://evil.example/${n}","x")`,
  (n) => `\u202e${n}<em>${mark}</em>`,
  (n) => `<em><img src=x onerror=${mark}></em>${n}`,
  (n) => `%3Cscript%3E${mark}%3C/script%3E${n}`,
];
const count = 500;

export async function run(stage: Stage, browser: Browser): Promise<readonly string[]> {
  const wrong: string[] = [];
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const { adminUrl } = stage.door;
  page.on('request', (request) => {
    if (!request.url().startsWith(adminUrl) && !/^(data|blob):/.test(request.url())) wrong.push(`asks ${request.url()}`);
    void request.allHeaders().then(
      (headers) =>
        !/^$|\/admin\/console\/files\//.test(headers['referer'] ?? '') && wrong.push(`sends a Referer to ${request.url()}`),
      () => undefined,
    );
  });
  page.on('dialog', (dialog) => {
    wrong.push('a dialog opened');
    void dialog.dismiss();
  });
  await signedIn(page, stage);
  await cells(page, wrong);
  await otherPages(context, page, stage, wrong);
  await secrets(browser, stage, wrong);
  return wrong;
}

/** 500 values as cells, keys, highlights and statements. */
async function cells(page: Page, wrong: string[]): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => ({
    id: `k${n}${shapes[n % shapes.length]!(n)}`,
    text: shapes[n % shapes.length]!(n),
    word: 'hostile',
  }));
  const body = rows.map((row) => JSON.stringify(row)).join('\n');
  const status = await page.evaluate<number>(
    `fetch('/admin/console/api/ingest/auto?object_type=Hostile&primary_key=id', { method: 'POST', headers: { 'content-type': 'application/x-ndjson', 'x-annals-session': sessionStorage.getItem('annals-session:/admin/console') }, body: ${JSON.stringify(body)} }).then((reply) => reply.status)`,
  );
  if (status !== 200) wrong.push(`the rows were answered with ${status}`);
  // The tree learns of the new type.
  await page.reload();
  await page.waitForSelector('.side a >> text=Hostile');
  const look = async (href: string, ready: string): Promise<void> => {
    await show(page, href);
    await page
      .waitForSelector(ready, { timeout: 20_000 })
      .catch(() => wrong.push(`${decodeURIComponent(href).slice(0, 60)} shows nothing`));
    if (await page.evaluate<boolean>('window.__hit === 1')) wrong.push(`${decodeURIComponent(href).slice(0, 80)} ran it`);
    if ((await page.locator('main img, main iframe, main script, main base').count()) > 0)
      wrong.push(`${href.slice(0, 60)} made elements of it`);
  };
  await look(hrefOf('query', { sql: 'SELECT * FROM Hostile' }), '.grid .row');
  for (let i = 0; i < 20; i++) await page.evaluate(`document.querySelector('.grid').scrollTop = ${i * 27 * 25}`);
  await look(hrefOf('search', { q: 'hostile', type: 'Hostile' }), 'em.hit');
  for (const [n, shape] of shapes.entries()) {
    await look(hrefOf('row', { type: 'Hostile', key: `k${n}${shape(n)}` }), 'svg .version');
    await look(hrefOf('query', { sql: `SELECT '${shape(n).replaceAll("'", "''")}' AS x` }), '.grid .row, .problem');
    await look(hrefOf(shape(n)), 'main');
    await look(hrefOf('graph', { node: shape(n) }), 'main form');
  }
}

/** Another port of this machine: it is sent the cookie's site, and gets nothing. */
async function otherPages(
  context: Awaited<ReturnType<Browser['newContext']>>,
  own: Page,
  stage: Stage,
  wrong: string[],
): Promise<void> {
  const { adminUrl } = stage.door;
  const server: Server = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end(`<iframe src="${adminUrl}/admin/console"></iframe>`),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    for (const [method, path] of [
      ['POST', 'session'],
      ['GET', 'session'],
      ['GET', 'api/types'],
      ['DELETE', 'session'],
    ]) {
      const got = await page.evaluate<string>(
        `fetch('${adminUrl}/admin/console/${path}', { method: '${method}', credentials: 'include' }).then((reply) => 'read ' + reply.status, () => 'refused')`,
      );
      if (got !== 'refused') wrong.push(`another port may ${method} ${path}: ${got}`);
    }
    const frame = page.frames().find((each) => each !== page.mainFrame());
    const framed = await frame?.evaluate<string>('document.querySelector("#app")?.textContent ?? ""').catch(() => '');
    if (framed) wrong.push('the console was framed');
    await page.close();
    const [stolen] = (await context.cookies(`${adminUrl}/admin/console/session`)).filter(({ name }) =>
      name.startsWith('annals-'),
    );
    for (const host of [new URL(adminUrl).host, `evil.example:${new URL(adminUrl).port}`]) {
      const reply = await fetch(`${adminUrl}/admin/console/api/types`, {
        headers: { cookie: `${stolen?.name}=${stolen?.value}`, host, origin: `http://${host}` },
      });
      if (reply.status !== 401 && reply.status !== 403) wrong.push(`a stolen cookie is answered with ${reply.status}`);
    }
    if (stolen?.httpOnly !== true || stolen.sameSite !== 'Strict') wrong.push('the cookie is not HttpOnly and Strict');
    if ((await own.evaluate<string>('document.cookie')) !== '') wrong.push('scripts see the cookie');
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** The credential of a URL is in no record, no address of the history, no storage. */
async function secrets(browser: Browser, stage: Stage, wrong: string[]): Promise<void> {
  const page = await browser.newPage();
  await page.goto(`${stage.door.adminUrl}/admin/console?token=${adminSecret}`);
  await page.waitForSelector('.shell');
  if (page.url().includes('token')) wrong.push('the credential stays in the address');
  await page.goBack().catch(() => null);
  if (page.url().includes(adminSecret)) wrong.push('the credential is in the history');
  const kept = await page
    .evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])')
    .catch(() => '');
  const records = JSON.stringify(await stage.admin('GET', '/admin/audit/entries?limit=1000'));
  for (const [where, text] of [
    ['the page', kept],
    ['the audit', records],
  ])
    if (text!.includes(adminSecret)) wrong.push(`the credential is in ${where}`);
  await page.close();
}
