/**
 * The user that quotas and pools know (admission 8.4).
 */

/** With Kerberos and an `@` in the name: `name[/host]@realm` -> `name`, null for other shapes. Else as it is. */
export function shortUser(name: string, kerberos: boolean): string | null {
  if (!kerberos || !name.includes("@")) return name;
  const match = /^([^/@]+)(?:\/[^/@]+)?@[^/@]+$/.exec(name);
  return match?.[1] ?? null;
}
