/**
 * ln, exp and the inverse normal, made from + - * / and nothing else.
 *
 * `Math.log` and its kin may differ between engines and have changed between versions of Node; a simulation
 * that is to give the same bytes everywhere cannot use them. The four operations and `Math.sqrt` are exact
 * everywhere, and JavaScript never fuses a multiplication with an addition (insight 6.1).
 */

const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
const LOG2_E = Math.LOG2E;
const SQRT_HALF = Math.SQRT1_2;

const bits = new DataView(new ArrayBuffer(8));

/** Natural logarithm of a positive, finite, normal number; within 1 unit in the last place. */
export function ln(x: number): number {
  bits.setFloat64(0, x);
  const high = bits.getUint32(0);
  let exponent = (high >>> 20) - 1023;
  bits.setUint32(0, (high & 0x000fffff) | 0x3fe00000);
  let mantissa = bits.getFloat64(0);
  exponent += 1;
  if (mantissa < SQRT_HALF) {
    mantissa *= 2;
    exponent -= 1;
  }
  // ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716
  const s = (mantissa - 1) / (mantissa + 1);
  const z = s * s;
  // In pairs, so that a processor can work on several at once.
  const z2 = z * z;
  const z4 = z2 * z2;
  const first = 1 / 3 + (1 / 5) * z + (1 / 7 + (1 / 9) * z) * z2;
  const next = 1 / 11 + (1 / 13) * z + (1 / 15 + (1 / 17) * z) * z2;
  const last = 1 / 19 + (1 / 21) * z;
  const sum = first + (next + last * z4) * z4;
  return exponent * LN2_HIGH + (2 * s + (2 * s * z * sum + exponent * LN2_LOW));
}

/** e to the x; 0 below -745, Infinity above 709.78. */
export function exp(x: number): number {
  if (x > 709.782712893384) return Number.POSITIVE_INFINITY;
  if (x < -745.1332191019412) return 0;
  const k = Math.floor(x * LOG2_E + 0.5);
  const r = x - k * LN2_HIGH - k * LN2_LOW;
  // Taylor on |r| <= 0.3466
  let sum = 1;
  for (let n = 17; n >= 1; n--) sum = 1 + (sum * r) / n;
  return k >= -1022 ? sum * powerOfTwo(k) : sum * powerOfTwo(k + 60) * powerOfTwo(-60);
}

/** 2^k for whole k from -1022 to 1023; 1024 in two steps. */
function powerOfTwo(k: number): number {
  if (k > 1023) return powerOfTwo(k - 1) * 2;
  bits.setUint32(0, (k + 1023) << 20);
  bits.setUint32(4, 0);
  return bits.getFloat64(0);
}

/** x to the y for positive x. */
export const pow = (x: number, y: number): number => exp(y * ln(x));

/** The z with P(Z <= z) = p for a standard normal Z, 0 < p < 1; Wichura's AS 241, about 16 digits. */
export function inverseNormal(p: number): number {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return (q * polynomial(CENTRE_OVER, r)) / polynomial(CENTRE_UNDER, r);
  }
  const tail = Math.sqrt(-ln(q < 0 ? p : 1 - p));
  const z =
    tail <= 5
      ? polynomial(MIDDLE_OVER, tail - 1.6) / polynomial(MIDDLE_UNDER, tail - 1.6)
      : polynomial(FAR_OVER, tail - 5) / polynomial(FAR_UNDER, tail - 5);
  return q < 0 ? -z : z;
}

/** Coefficients from the highest power down. */
function polynomial(coefficients: readonly number[], x: number): number {
  let sum = coefficients[0]!;
  for (let i = 1; i < coefficients.length; i++) sum = sum * x + coefficients[i]!;
  return sum;
}

const CENTRE_OVER = [
  2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987, 13731.69376550946, 1971.5909503065513,
  133.14166789178438, 3.3871328727963665,
];
const CENTRE_UNDER = [
  5226.495278852546, 28729.085735721943, 39307.89580009271, 21213.794301586597, 5394.196021424751, 687.1870074920579,
  42.31333070160091, 1,
];
const MIDDLE_OVER = [
  0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684, 3.6478483247632045,
  5.769497221460691, 4.630337846156546, 1.4234371107496835,
];
const MIDDLE_UNDER = [
  1.0507500716444169e-9, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008, 0.6897673349851,
  1.6763848301838038, 2.053191626637759, 1,
];
const FAR_OVER = [
  2.0103343992922881e-7, 0.000027115555687434876, 0.0012426609473880784, 0.026532189526576124, 0.29656057182850487,
  1.7848265399172913, 5.463784911164114, 6.657904643501103,
];
const FAR_UNDER = [
  2.0442631033899397e-15, 1.421511758316446e-7, 0.000018463183175100548, 0.0007868691311456133, 0.014875361290850615,
  0.1369298809227358, 0.599832206555888, 1,
];
