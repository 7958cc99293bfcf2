/* The kernels of this folder in C, as one would write them: a[] are the addresses of the arrays that a
   kernel takes, then of what it gives; n[] the extents of all its arguments and its integers, in order. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long long i64;
typedef unsigned char u8;
#define KERNEL(name) void name(void **a, i64 *n)
#define F(k) ((double *restrict)a[k])
#define I(k) ((i64 *restrict)a[k])
#ifdef _OPENMP
#define THREADS _Pragma("omp parallel for schedule(static)")
#define THREADS_UNEVEN _Pragma("omp parallel for schedule(dynamic, 8)")
#define THREADS_COUNT _Pragma("omp parallel for reduction(+ : count)")
#define THREADS_MOST _Pragma("omp parallel for reduction(max : most) schedule(dynamic, 256)")
#else
#define THREADS
#define THREADS_UNEVEN
#define THREADS_COUNT
#define THREADS_MOST
#endif

void repeat(void (*kernel)(void **, i64 *), void **a, i64 *n, i64 times) {
  for (i64 t = 0; t < times; t++) kernel(a, n);
}

/* Elements that have nothing to do with each other. */

KERNEL(polynomial) {
  double *restrict x = F(0), *restrict out = F(1);
  THREADS
  for (i64 i = 0; i < n[0]; i++) out[i] = ((x[i] * 0.5 - 1.0) * x[i] + 2.0) * x[i] - 0.25;
}

KERNEL(threshold) {
  double *restrict x = F(0), *restrict out = F(1);
  THREADS
  for (i64 i = 0; i < n[0]; i++) out[i] = x[i] > 0.5 ? log(x[i]) : 0.0;
}

KERNEL(gaussian) {
  double *restrict x = F(0), *restrict out = F(1);
  THREADS
  for (i64 i = 0; i < n[0]; i++) out[i] = exp(-0.5 * x[i] * x[i]);
}

KERNEL(clipped) {
  double *restrict x = F(0), *restrict out = F(1);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    double v = x[i];
    out[i] = v < -1.0 ? -1.0 : v > 1.0 ? 1.0 : v;
  }
}

KERNEL(transposed) {
  double *restrict x = F(0), *restrict out = F(1);
  i64 rows = n[0], columns = n[1];
  THREADS
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < columns; j++) out[j * n[3] + i] = x[i * columns + j];
}

/* Elements and their neighbours. */

KERNEL(stencil) {
  double *restrict u = F(0), *restrict out = F(1);
  i64 rows = n[0], m = n[1];
  THREADS
  for (i64 i = 1; i < rows - 1; i++)
    for (i64 j = 1; j < m - 1; j++)
      out[i * m + j] = 0.25 * (u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] + u[i * m + j + 1]);
}

KERNEL(smooth) {
  double *restrict x = F(0), *restrict out = F(1);
  THREADS
  for (i64 i = 1; i < n[0] - 1; i++) out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;
}

KERNEL(laplacian) {
  double *restrict u = F(0), *restrict out = F(1);
  i64 p = n[1] * n[2], m = n[2];
  THREADS
  for (i64 i = 1; i < n[0] - 1; i++)
    for (i64 j = 1; j < n[1] - 1; j++)
      for (i64 k = 1; k < m - 1; k++) {
        i64 at = i * p + j * m + k;
        out[at] = u[at - p] + u[at + p] + u[at - m] + u[at + m] + u[at - 1] + u[at + 1] - 6.0 * u[at];
      }
}

KERNEL(life) {
  i64 *restrict grid = I(0), *restrict new = I(1), rows = n[0], m = n[1];
  THREADS
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < m; j++) {
      i64 alive = 0;
      for (i64 a = -1; a < 2; a++)
        for (i64 b = -1; b < 2; b++)
          if (a != 0 || b != 0) alive += grid[(i + a + rows) % rows * m + (j + b + m) % m];
      new[i * m + j] = alive == 3 || (alive == 2 && grid[i * m + j] == 1);
    }
}

KERNEL(convolution) {
  double *restrict image = F(0), *restrict weights = F(1), *restrict out = F(2);
  i64 rows = n[0] - n[2] + 1, columns = n[1] - n[3] + 1;
  THREADS
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < columns; j++) {
      double s = 0.0;
      for (i64 p = 0; p < n[2]; p++)
        for (i64 q = 0; q < n[3]; q++) s += image[(i + p) * n[1] + j + q] * weights[p * n[3] + q];
      out[i * columns + j] = s;
    }
}

KERNEL(bilateral) {
  double *restrict image = F(0), *restrict out = F(1);
  i64 rows = n[0], m = n[1];
  memset(out, 0, rows * m * sizeof *out);
  THREADS
  for (i64 i = 2; i < rows - 2; i++)
    for (i64 j = 2; j < m - 2; j++) {
      double total = 0.0, weight = 0.0;
      for (i64 a = -2; a < 3; a++)
        for (i64 b = -2; b < 3; b++) {
          double d = image[(i + a) * m + j + b] - image[i * m + j];
          double w = exp(-(double)(a * a + b * b) / 8.0 - d * d / 0.02);
          total += w * image[(i + a) * m + j + b];
          weight += w;
        }
      out[i * m + j] = total / weight;
    }
}

KERNEL(heat) {
  double *restrict u = F(1), *restrict new = malloc(n[0] * sizeof(double));
  i64 m = n[0];
  memcpy(u, a[0], m * sizeof *u);
  memcpy(new, u, m * sizeof *u);
  for (i64 t = 0; t < n[1]; t++) {
    THREADS
    for (i64 i = 1; i < m - 1; i++) new[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
    THREADS
    for (i64 i = 1; i < m - 1; i++) u[i] = new[i];
  }
  free(new);
}

KERNEL(maximum_filter) {
  double *restrict image = F(0), *restrict out = F(1);
  i64 rows = n[0], m = n[1];
  memset(out, 0, rows * m * sizeof *out);
  THREADS
  for (i64 i = 1; i < rows - 1; i++)
    for (i64 j = 1; j < m - 1; j++) {
      double best = image[i * m + j];
      for (i64 a = -1; a < 2; a++)
        for (i64 b = -1; b < 2; b++)
          if (image[(i + a) * m + j + b] > best) best = image[(i + a) * m + j + b];
      out[i * m + j] = best;
    }
}

/* Sums, counts, extremes and their places. */

KERNEL(row_norms) {
  double *restrict x = F(0), *restrict out = F(1);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    double s = 0.0;
    for (i64 j = 0; j < n[1]; j++) s += x[i * n[1] + j] * x[i * n[1] + j];
    out[i] = sqrt(s);
  }
}

KERNEL(column_sums) {
  double *restrict x = F(0), *restrict out = F(1);
  THREADS
  for (i64 j = 0; j < n[1]; j++) {
    double s = 0.0;
    for (i64 i = 0; i < n[0]; i++) s += x[i * n[1] + j];
    out[j] = s;
  }
}

KERNEL(largest) {
  double *restrict x = F(0), best = x[0];
  for (i64 i = 1; i < n[0]; i++)
    if (x[i] > best) best = x[i];
  *F(1) = best;
}

KERNEL(place_of_largest) {
  double *restrict x = F(0), best = x[0];
  i64 place = 0;
  for (i64 i = 1; i < n[0]; i++)
    if (x[i] > best) {
      best = x[i];
      place = i;
    }
  *I(1) = place;
}

KERNEL(count_positive) {
  double *restrict x = F(0);
  i64 count = 0;
  THREADS_COUNT
  for (i64 i = 0; i < n[0]; i++)
    if (x[i] > 0.0) count++;
  *I(1) = count;
}

KERNEL(histogram) {
  double *restrict x = F(0);
  i64 *restrict counts = I(1);
  for (i64 i = 0; i < n[0]; i++) counts[(i64)(x[i] * 64)]++;
}

KERNEL(nearest_centre) {
  double *restrict points = F(0), *restrict centres = F(1);
  i64 *restrict out = I(2);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    double best = 1e300;
    i64 place = 0;
    for (i64 k = 0; k < n[2]; k++) {
      double d = 0.0;
      for (i64 c = 0; c < n[1]; c++) {
        double e = points[i * n[1] + c] - centres[k * n[1] + c];
        d += e * e;
      }
      if (d < best) {
        best = d;
        place = k;
      }
    }
    out[i] = place;
  }
}

KERNEL(welford) {
  double *restrict x = F(0), mean = 0.0, m2 = 0.0;
  for (i64 i = 0; i < n[0]; i++) {
    double d = x[i] - mean;
    mean += d / (double)(i + 1);
    m2 += d * (x[i] - mean);
  }
  *F(1) = m2 / (double)n[0];
}

/* Tables that are filled from their own entries. */

static i64 less(i64 a, i64 b) { return b < a ? b : a; }
static double least(double a, double b) { return b < a ? b : a; }

KERNEL(levenshtein) {
  i64 *restrict a_ = I(0), *restrict b_ = I(1), rows = n[0], m = n[1], w = m + 1;
  i64 *d = malloc((rows + 1) * w * sizeof *d);
  for (i64 i = 0; i <= rows; i++) d[i * w] = i;
  for (i64 j = 0; j <= m; j++) d[j] = j;
  for (i64 i = 1; i <= rows; i++)
    for (i64 j = 1; j <= m; j++) {
      i64 cost = a_[i - 1] == b_[j - 1] ? 0 : 1;
      d[i * w + j] = less(less(d[(i - 1) * w + j] + 1, d[i * w + j - 1] + 1), d[(i - 1) * w + j - 1] + cost);
    }
  *I(2) = d[rows * w + m];
  free(d);
}

KERNEL(common_subsequence) {
  i64 *restrict a_ = I(0), *restrict b_ = I(1), rows = n[0], m = n[1], w = m + 1;
  i64 *t = calloc((rows + 1) * w, sizeof *t);
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < m; j++) {
      if (a_[i] == b_[j])
        t[(i + 1) * w + j + 1] = t[i * w + j] + 1;
      else if (t[i * w + j + 1] > t[(i + 1) * w + j])
        t[(i + 1) * w + j + 1] = t[i * w + j + 1];
      else
        t[(i + 1) * w + j + 1] = t[(i + 1) * w + j];
    }
  *I(2) = t[rows * w + m];
  free(t);
}

KERNEL(knapsack) {
  i64 *restrict weights = I(0), room = n[2];
  double *restrict values = F(1), *restrict best = F(2);
  memset(best, 0, (room + 1) * sizeof *best);
  for (i64 k = 0; k < n[0]; k++)
    for (i64 w = room; w > 0; w--)
      if (weights[k] <= w) {
        double v = best[w - weights[k]] + values[k];
        if (v > best[w]) best[w] = v;
      }
}

KERNEL(shortest_paths) {
  double *restrict d = F(1);
  i64 m = n[0];
  memcpy(d, a[0], m * m * sizeof *d);
  for (i64 k = 0; k < m; k++) {
    THREADS
    for (i64 i = 0; i < m; i++)
      for (i64 j = 0; j < m; j++)
        if (d[i * m + k] + d[k * m + j] < d[i * m + j]) d[i * m + j] = d[i * m + k] + d[k * m + j];
  }
}

KERNEL(time_warping) {
  double *restrict x = F(0), *restrict y = F(1);
  i64 rows = n[0], m = n[1], w = m + 1;
  double *d = malloc((rows + 1) * w * sizeof *d);
  for (i64 k = 0; k < (rows + 1) * w; k++) d[k] = 1e300;
  d[0] = 0.0;
  for (i64 i = 1; i <= rows; i++)
    for (i64 j = 1; j <= m; j++)
      d[i * w + j] = fabs(x[i - 1] - y[j - 1])
                     + least(least(d[(i - 1) * w + j], d[i * w + j - 1]), d[(i - 1) * w + j - 1]);
  *F(2) = d[rows * w + m];
  free(d);
}

/* Linear algebra by loops. */

KERNEL(product) {
  double *restrict x = F(0), *restrict y = F(1), *restrict c = F(2);
  i64 rows = n[0], inner = n[1], m = n[3];
  THREADS
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < m; j++) {
      double s = 0.0;
      for (i64 p = 0; p < inner; p++) s += x[i * inner + p] * y[p * m + j];
      c[i * m + j] = s;
    }
}

KERNEL(lu) {
  double *restrict x = F(1);
  i64 m = n[0];
  memcpy(x, a[0], m * m * sizeof *x);
  for (i64 k = 0; k < m; k++) {
    THREADS
    for (i64 i = k + 1; i < m; i++) {
      x[i * m + k] /= x[k * m + k];
      for (i64 j = k + 1; j < m; j++) x[i * m + j] -= x[i * m + k] * x[k * m + j];
    }
  }
}

KERNEL(cholesky) {
  double *restrict x = F(0), *restrict low = F(1);
  i64 m = n[0];
  memset(low, 0, m * m * sizeof *low);
  for (i64 i = 0; i < m; i++)
    for (i64 j = 0; j <= i; j++) {
      double s = x[i * m + j];
      for (i64 k = 0; k < j; k++) s -= low[i * m + k] * low[j * m + k];
      low[i * m + j] = i == j ? sqrt(s) : s / low[j * m + j];
    }
}

KERNEL(substitution) {
  double *restrict m = F(0), *restrict b = F(1), *restrict x = F(2);
  for (i64 i = 0; i < n[0]; i++) {
    double s = b[i];
    for (i64 j = 0; j < i; j++) s -= m[i * n[0] + j] * x[j];
    x[i] = s / m[i * n[0] + i];
  }
}

KERNEL(matrix_vector) {
  double *restrict m = F(0), *restrict x = F(1), *restrict y = F(2);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    double s = 0.0;
    for (i64 j = 0; j < n[1]; j++) s += m[i * n[1] + j] * x[j];
    y[i] = s;
  }
}

/* Each element needs the one before. */

KERNEL(recursive_filter) {
  double *restrict x = F(0), *restrict out = F(1);
  out[0] = 0.0;
  for (i64 i = 1; i < n[0]; i++) out[i] = out[i - 1] * 0.9 + x[i];
}

KERNEL(moving_average) {
  double *restrict x = F(0), alpha = *F(1), *restrict out = F(2), s = x[0];
  for (i64 i = 0; i < n[0]; i++) out[i] = s = alpha * x[i] + (1.0 - alpha) * s;
}

KERNEL(running_sum) {
  double *restrict x = F(0), *restrict out = F(1), s = 0.0;
  for (i64 i = 0; i < n[0]; i++) out[i] = s += x[i];
}

KERNEL(biquad) {
  double *restrict x = F(0), *restrict out = F(1), x1 = 0, x2 = 0, y1 = 0, y2 = 0;
  for (i64 i = 0; i < n[0]; i++) {
    double y = 0.2 * x[i] + 0.3 * x1 + 0.2 * x2 + 0.5 * y1 - 0.2 * y2;
    x2 = x1;
    x1 = x[i];
    y2 = y1;
    y1 = y;
    out[i] = y;
  }
}

/* Sorting, searching, sieving. */

KERNEL(insertion_sort) {
  double *restrict x = F(1);
  memcpy(x, a[0], n[0] * sizeof *x);
  for (i64 i = 1; i < n[0]; i++) {
    double v = x[i];
    i64 j = i - 1;
    while (j >= 0 && x[j] > v) {
      x[j + 1] = x[j];
      j--;
    }
    x[j + 1] = v;
  }
}

KERNEL(bubble_sort) {
  double *restrict x = F(1);
  memcpy(x, a[0], n[0] * sizeof *x);
  for (i64 i = 0; i < n[0]; i++)
    for (i64 j = 0; j < n[0] - 1 - i; j++)
      if (x[j] > x[j + 1]) {
        double t = x[j];
        x[j] = x[j + 1];
        x[j + 1] = t;
      }
}

KERNEL(binary_search) {
  double *restrict x = F(0), *restrict wanted = F(1);
  i64 *restrict out = I(2);
  THREADS
  for (i64 i = 0; i < n[1]; i++) {
    i64 lo = 0, hi = n[0];
    while (lo < hi) {
      i64 middle = (lo + hi) / 2;
      if (x[middle] < wanted[i])
        lo = middle + 1;
      else
        hi = middle;
    }
    out[i] = lo;
  }
}

KERNEL(sieve) {
  u8 *restrict prime = a[0];
  memset(prime, 1, n[0]);
  prime[0] = prime[1] = 0;
  for (i64 i = 2; i <= (i64)sqrt((double)n[0]); i++)
    if (prime[i])
      for (i64 j = i * i; j < n[0]; j += i) prime[j] = 0;
}

/* Integer arithmetic. */

KERNEL(collatz) {
  i64 most = 0;
  THREADS_MOST
  for (i64 i = 1; i < n[0]; i++) {
    i64 count = 0, m = i;
    while (m != 1) {
      m = m % 2 == 0 ? m / 2 : 3 * m + 1;
      count++;
    }
    if (count > most) most = count;
  }
  *I(0) = most;
}

KERNEL(bit_counts) {
  i64 *restrict x = I(0), *restrict out = I(1);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    i64 v = x[i];
    v = v - ((v >> 1) & 0x5555555555555555);
    v = (v & 0x3333333333333333) + ((v >> 2) & 0x3333333333333333);
    v = (v + (v >> 4)) & 0x0F0F0F0F0F0F0F0F;
    v = v + (v >> 8);
    v = v + (v >> 16);
    v = v + (v >> 32);
    out[i] = v & 127;
  }
}

KERNEL(random_walk) {
  i64 *restrict out = I(0), state = 12345, place = 0;
  for (i64 i = 0; i < n[0]; i++) {
    state = (state * 1103515245 + 12345) % 2147483648LL;
    place += state > 1073741824 ? 1 : -1;
    out[i] = place;
  }
}

KERNEL(checksum) {
  u8 *restrict data = a[0];
  i64 h = 5381;
  for (i64 i = 0; i < n[0]; i++) h = (h * 33 + data[i]) % 4294967296LL;
  *I(1) = h;
}

KERNEL(divisors) {
  i64 *restrict a_ = I(0), *restrict b_ = I(1), *restrict out = I(2);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    i64 x = a_[i], y = b_[i];
    while (y != 0) {
      i64 t = x % y;
      x = y;
      y = t;
    }
    out[i] = x;
  }
}

/* Physics, fractals, rays. */

KERNEL(pairs) {
  double *restrict p = F(0), *restrict d = F(1);
  i64 m = n[0];
  THREADS
  for (i64 i = 0; i < m; i++)
    for (i64 j = 0; j < m; j++) {
      double x = p[2 * i] - p[2 * j], y = p[2 * i + 1] - p[2 * j + 1];
      d[i * m + j] = sqrt(x * x + y * y);
    }
}

KERNEL(gravity) {
  double *restrict p = F(0), *restrict m = F(1), *restrict f = F(2);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    double f0 = 0.0, f1 = 0.0, f2 = 0.0;
    for (i64 j = 0; j < n[0]; j++)
      if (i != j) {
        double x = p[3 * j] - p[3 * i], y = p[3 * j + 1] - p[3 * i + 1], z = p[3 * j + 2] - p[3 * i + 2];
        double d = x * x + y * y + z * z + 0.01, s = m[j] / (d * sqrt(d));
        f0 += s * x;
        f1 += s * y;
        f2 += s * z;
      }
    f[3 * i] = f0;
    f[3 * i + 1] = f1;
    f[3 * i + 2] = f2;
  }
}

KERNEL(mandelbrot) {
  i64 *restrict out = I(0), m = n[0];
  THREADS_UNEVEN
  for (i64 i = 0; i < m; i++)
    for (i64 j = 0; j < m; j++) {
      double cr = -2.0 + 3.0 * j / m, ci = -1.5 + 3.0 * i / m, x = 0.0, y = 0.0;
      i64 k = 0;
      while (k < n[1] && x * x + y * y < 4.0) {
        double t = x * x - y * y + cr;
        y = 2.0 * x * y + ci;
        x = t;
        k++;
      }
      out[i * m + j] = k;
    }
}

KERNEL(julia) {
  double *restrict out = F(0);
  i64 m = n[0];
  memset(out, 0, m * m * sizeof *out);
  THREADS_UNEVEN
  for (i64 i = 0; i < m; i++)
    for (i64 j = 0; j < m; j++) {
      double x = -1.5 + 3.0 * j / m, y = -1.5 + 3.0 * i / m;
      for (i64 k = 0; k < 50; k++) {
        if (x * x + y * y > 4.0) break;
        double t = x * x - y * y - 0.8;
        y = 2.0 * x * y + 0.156;
        x = t;
        out[i * m + j] = (double)k;
      }
    }
}

KERNEL(ray_marching) {
  double *restrict image = F(0), half = n[0] / 2.0, m = (double)n[0];
  THREADS_UNEVEN
  for (i64 i = 0; i < n[0]; i++)
    for (i64 j = 0; j < n[0]; j++) {
      double dx = (j - half) / m, dy = (i - half) / m, dz = 1.0, t = 0.0;
      double length = sqrt(dx * dx + dy * dy + dz * dz);
      for (i64 k = 0; k < 40; k++) {
        double x = t * dx / length, y = t * dy / length, z = t * dz / length - 3.0;
        double d = sqrt(x * x + y * y + z * z) - 1.0;
        if (d < 0.001 || t > 10.0) break;
        t += d;
      }
      image[i * n[0] + j] = t;
    }
}

KERNEL(logistic_map) {
  double *restrict x = F(1);
  memcpy(x, a[0], n[0] * sizeof *x);
  THREADS
  for (i64 i = 0; i < n[0]; i++) {
    double v = x[i];
    for (i64 k = 0; k < n[1]; k++) v = 3.7 * v * (1.0 - v);
    x[i] = v;
  }
}
