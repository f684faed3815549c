/**
 * From a Kerberos-style name to the short name that placement, access and groups use (pool-configuration 3.3).
 *
 * Only the default rules: the primary part of names of one or two components. Hadoop's auth_to_local rules need a
 * Kerberos installation and are not emulated.
 */

/** null: the name does not fit the pattern, an internal error in the product. */
export function shortName(name: string): string | null {
  if (!/[/@]/.test(name)) return name;
  const [, primary, host, realm] = /^([^/@]+)(?:\/([^/@]+))?(?:@([^/@]+))?$/.exec(name) ?? [];
  if (primary === undefined) return name.includes("@") ? null : name;
  return host === undefined && realm === undefined ? name : primary;
}
