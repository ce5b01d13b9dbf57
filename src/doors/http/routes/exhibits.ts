/** POST /exhibits, POST /exhibits/:id/links, GET /exhibits/:id: answers and words under seal, to be derived again. */
import { z } from 'zod';
import type { ExhibitDesk } from '../../../governance/gate-contract.ts';
import { linkExhibit, type Linked, openExhibit } from '../../../planner/exhibits/link.ts';
import { readRecipe } from '../../../planner/exhibits/recipe.ts';
import type { ExhibitLink, ExhibitView } from '../../../projections/access-paths.ts';
import type { HttpContext } from '../context.ts';
import { reply, type Answered, route, type Route } from '../route.ts';
import { statedPurpose, wantsSync } from '../request-headers.ts';
import { signalOf } from '../invoke.ts';
import { nanoseconds } from '../schemas.ts';

const sealField = z.string().describe('SHA-256, lower-case hex');

const exhibitLinkReply = z
  .object({
    exhibit_id: z.string(),
    seq: z.int().describe('number of the link; 0 opened the exhibit'),
    act: z.string(),
    seal: sealField,
    prev_seal: sealField,
    basis: nanoseconds.describe('as_of_system of what was read'),
    result_digest: sealField,
    row_count: z.int().nullable().describe('of a query; null of words'),
    leaf_index: z.int().describe('of the entry in the log: /audit/proof proves it'),
    system_from: nanoseconds,
  })
  .meta({ id: 'ExhibitLinkReply' });

const shownExhibitLink = z.object({
  seq: z.int(),
  act: z.string(),
  principal: z.string(),
  time: nanoseconds,
  seal: sealField,
  prev_seal: sealField,
  basis: nanoseconds.nullable(),
  statement: z.string().nullable().describe('null without the right to replay the link'),
  text: z.string().nullable(),
  result_digest: sealField.nullable(),
  leaf_index: z.int().nullable(),
});

const exhibitReply = z
  .object({
    exhibit_id: z.string(),
    organization: z.string().nullable(),
    title: z.string().nullable(),
    created_at: nanoseconds,
    opening_seal: sealField,
    link_count: z.int(),
    links: z.array(shownExhibitLink),
    next: z.int().nullable().describe('pass as `after` for the links that follow'),
  })
  .meta({ id: 'Exhibit' });

const openExhibitBody = z.object({ title: z.string().optional(), purpose: z.string().optional() });

const exhibitLinkBody = z.object({
  act: z.string().default('query').describe('query, note or decision'),
  sql: z.string().optional().describe('of a query'),
  text: z.string().optional().describe('of a note or decision'),
  purpose: z.string().optional(),
});

const exhibitLinksDefault = 100;
const exhibitLinksMax = 1_000;

const exhibitPageQuery = z.object({
  after: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional()
    .describe('links with a greater number'),
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .optional()
    .describe(`1 to ${exhibitLinksMax}`),
});

const exhibitParams = z.object({ id: z.string() });

export const exhibitRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/exhibits',
    access: 'token',
    action: 'replay',
    bucket: 'write',
    summary: 'Open an exhibit',
    tags: ['exhibits'],
    body: openExhibitBody,
    replies: { 201: exhibitLinkReply },
    purposeIn: 'body',
    example: { body: { title: 'a text' } },
    run: async (exhibitInvocation, { body: exhibitBody, request: exhibitRequest, context: httpContext }) => {
      const { title: exhibitTitle = 'exhibit' } = exhibitBody;
      const isSyncWrite = wantsSync(exhibitRequest);
      return createdExhibitLink(
        await openExhibit(exhibitInvocation, exhibitContext(httpContext), {
          exhibit: httpContext.ids.next(),
          title: exhibitTitle,
          sync: isSyncWrite,
        }),
      );
    },
  }),

  route({
    method: 'POST',
    path: '/exhibits/:id/links',
    access: 'token',
    action: 'replay',
    bucket: 'write',
    summary: 'Put the answer of a query, a note or a decision on an exhibit',
    tags: ['exhibits'],
    params: exhibitParams,
    body: exhibitLinkBody,
    replies: { 201: exhibitLinkReply },
    purposeIn: 'body',
    example: { params: { id: 'an exhibit' }, body: { act: 'note', text: 'a text' } },
    run: async (
      exhibitInvocation,
      { params: exhibitRoute, body: exhibitBody, request: exhibitRequest, context: httpContext },
    ) => {
      const { act: linkAct, sql: linkSql, text: linkText, purpose: linkPurpose } = exhibitBody;
      const exhibitLink = await linkExhibit(exhibitInvocation, exhibitContext(httpContext), {
        exhibit: exhibitRoute.id,
        act: linkAct,
        purpose: statedPurpose(exhibitRequest, linkPurpose),
        sync: wantsSync(exhibitRequest),
        signal: signalOf(exhibitRequest.raw.socket),
        ...(linkSql === undefined ? {} : { sql: linkSql }),
        ...(linkText === undefined ? {} : { text: linkText }),
      });
      return createdExhibitLink(exhibitLink);
    },
  }),

  route({
    method: 'GET',
    path: '/exhibits/:id',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'An exhibit and its links',
    tags: ['exhibits'],
    params: exhibitParams,
    query: exhibitPageQuery,
    replies: { 200: exhibitReply },
    example: { params: { id: 'an exhibit' } },
    run: async (exhibitInvocation, { params: exhibitRoute, query: exhibitQuery }) => {
      const exhibitDesk = exhibitInvocation.exhibits();
      const { after: afterLink = '0', limit: linkLimit = String(exhibitLinksDefault) } = exhibitQuery;
      return describeExhibit(
        exhibitDesk,
        exhibitDesk.exhibit(exhibitRoute.id),
        Number(afterLink),
        Math.min(exhibitLinksMax, Math.max(1, Number(linkLimit))),
      );
    },
  }),
];

function exhibitContext({ planner: exhibitPlanner, system: systemDesk, yieldTurn }: HttpContext) {
  return { planner: exhibitPlanner, engine: systemDesk.version, yieldTurn };
}

function createdExhibitLink({
  link: exhibitLink,
  basis: linkBasis,
  rowCount: linkRowCount,
  exhibit: exhibitId,
}: Linked): Answered {
  return reply(201, {
    exhibit_id: exhibitId,
    seq: exhibitLink.link,
    act: exhibitLink.act,
    seal: exhibitLink.seal,
    prev_seal: exhibitLink.previousSeal,
    basis: linkBasis,
    result_digest: exhibitLink.resultHash,
    row_count: linkRowCount,
    leaf_index: exhibitLink.leaf,
    system_from: exhibitLink.time,
  } satisfies Partial<Record<keyof z.input<typeof exhibitLinkReply>, unknown>>);
}

async function describeExhibit(exhibitDesk: ExhibitDesk, exhibitView: ExhibitView, afterLink: number, linkLimit: number) {
  const openingLink = exhibitView.links[0]!;
  const pageLinks = exhibitView.links.slice(Math.max(1, afterLink + 1)).slice(0, linkLimit);
  const lastLink = pageLinks.at(-1)?.link ?? afterLink;
  const describedLinks = [];
  for (const exhibitLink of pageLinks) describedLinks.push(await describeExhibitLink(exhibitDesk, exhibitView, exhibitLink));
  return {
    exhibit_id: exhibitView.id,
    organization: exhibitView.path,
    title: (await describeExhibitLink(exhibitDesk, exhibitView, openingLink)).text,
    created_at: openingLink.time,
    opening_seal: openingLink.seal,
    link_count: exhibitView.links.length - 1,
    links: describedLinks,
    next: lastLink < exhibitView.links.length - 1 ? lastLink : null,
  };
}

/** Seals, act, time and principal form the chain; the statement is shown only to callers who may run it again. */
async function describeExhibitLink(exhibitDesk: ExhibitDesk, exhibitView: ExhibitView, exhibitLink: ExhibitLink) {
  const isLinkReadable = exhibitDesk.mayReplay(exhibitLink);
  const recipeText = isLinkReadable ? (await exhibitDesk.entry(exhibitView, exhibitLink)).recipe : null;
  const linkRecipe = recipeText === null ? null : readRecipe(recipeText);
  return {
    seq: exhibitLink.link,
    act: exhibitLink.act,
    principal: exhibitLink.principal,
    time: exhibitLink.time,
    seal: exhibitLink.seal,
    prev_seal: exhibitLink.previousSeal,
    basis: linkRecipe?.grant.instant ?? null,
    statement: linkRecipe?.statement ?? null,
    text: linkRecipe?.text ?? null,
    result_digest: isLinkReadable ? exhibitLink.resultHash : null,
    leaf_index: isLinkReadable ? exhibitLink.leaf : null,
  };
}
