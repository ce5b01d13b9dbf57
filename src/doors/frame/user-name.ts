/** The user of a connection, as doors that have no other way to say it name an organisation: `name@acme/eu`. */

export function organizationOf(user: string): string | null {
  const at = user.lastIndexOf('@');
  return at < 0 ? null : user.slice(at + 1);
}
