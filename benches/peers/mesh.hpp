// Meshes that `cargo bench --bench peers_collide` wrote, and figures as it reads them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

struct Mesh {
  std::vector<double> x;            // three a vertex
  std::vector<uint32_t> triangles;  // three a triangle
  size_t size() const { return triangles.size() / 3; }
  const double* corner(size_t triangle, int k) const { return &x[3 * triangles[3 * triangle + k]]; }
};

template <class T> std::vector<T> numbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(path);
  std::vector<T> all(size_t(file.tellg()) / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(all.data()), std::streamsize(all.size() * sizeof(T)));
  return all;
}

inline Mesh read(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  return {numbers<double>(path + ".x"), numbers<uint32_t>(path + ".triangles")};
}

// An f32 below d, as the bench rounds.
inline float below(double d) {
  const float nearest = float(d);
  return nearest - std::fabs(nearest) * std::numeric_limits<float>::epsilon() - std::numeric_limits<float>::min();
}

// Prints the shortest time of this number of runs, and of more if they take less than a quarter of
// a second: caches take a while to hold what comes again. The count is what the last run returns.
template <class F> void report(const char* what, const char* peer, int runs, F run) {
  double best = std::numeric_limits<double>::infinity(), all = 0;
  size_t count = 0;
  for (int i = 0; i < runs || all < 250; ++i) {
    const auto start = std::chrono::steady_clock::now();
    count = run();
    const double time = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, time);
    all += time;
  }
  std::printf("%s %s %.6f %zu\n", what, peer, best, count);
  std::fflush(stdout);
}
