// Pairs of boxes by Embree's rtcCollide, on cloth that `cargo bench --bench peers_collide` wrote.
//
//   embree_collide DIRECTORY RUNS H
//
// Boxes of near pairs are larger by half of H m. Prints lines `WHAT PEER MILLISECONDS COUNT`, on
// one thread. Embree reports each pair of a scene with itself twice, and each triangle with itself:
// a pair is counted once. When it refits, Embree puts several triangles into a leaf, and meets more
// pairs.
//
// Debian: apt-get install libembree-dev
#include <embree3/rtcore.h>

#include "mesh.hpp"

struct Cloth {
  const Mesh* mesh;
  double radius;
};

static void bounds(const RTCBoundsFunctionArguments* at) {
  const auto* cloth = static_cast<const Cloth*>(at->geometryUserPtr);
  float low[3], high[3];
  for (int k = 0; k < 3; ++k) {
    const double a = cloth->mesh->corner(at->primID, 0)[k], b = cloth->mesh->corner(at->primID, 1)[k],
                 c = cloth->mesh->corner(at->primID, 2)[k];
    low[k] = below(std::min({a, b, c}) - cloth->radius);
    high[k] = -below(-std::max({a, b, c}) - cloth->radius);
  }
  *at->bounds_o = {low[0], low[1], low[2], 0, high[0], high[1], high[2], 0};
}

static RTCScene scene(RTCDevice device, Cloth& cloth, RTCBuildQuality quality, bool refits) {
  RTCScene scene = rtcNewScene(device);
  rtcSetSceneFlags(scene, refits ? RTC_SCENE_FLAG_DYNAMIC : RTC_SCENE_FLAG_NONE);
  rtcSetSceneBuildQuality(scene, quality);
  RTCGeometry geometry = rtcNewGeometry(device, RTC_GEOMETRY_TYPE_USER);
  rtcSetGeometryUserPrimitiveCount(geometry, unsigned(cloth.mesh->size()));
  rtcSetGeometryUserData(geometry, &cloth);
  rtcSetGeometryBoundsFunction(geometry, bounds, nullptr);
  rtcSetGeometryIntersectFunction(geometry, [](const RTCIntersectFunctionNArguments*) {});
  rtcSetGeometryOccludedFunction(geometry, [](const RTCOccludedFunctionNArguments*) {});
  rtcSetGeometryBuildQuality(geometry, refits ? RTC_BUILD_QUALITY_REFIT : quality);
  rtcCommitGeometry(geometry);
  rtcAttachGeometry(scene, geometry);
  rtcReleaseGeometry(geometry);
  rtcCommitScene(scene);
  return scene;
}

static size_t pairs(RTCScene one, RTCScene two) {
  struct Count {
    bool itself;
    size_t pairs;
  } count{one == two, 0};
  rtcCollide(one, two, [](void* to, RTCCollision* found, unsigned n) {
    auto* count = static_cast<Count*>(to);
    for (unsigned i = 0; i < n; ++i) count->pairs += !count->itself || found[i].primID0 < found[i].primID1;
  }, &count);
  return count.pairs;
}

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "embree_collide DIRECTORY RUNS H\n"), 2;
  const std::string directory = argv[1];
  const int runs = std::atoi(argv[2]);
  RTCDevice device = rtcNewDevice("threads=1");
  const Mesh crumpled = read(directory, "crumpled"), draped = read(directory, "draped"), ball = read(directory, "ball");
  Cloth still{&crumpled, 0.0}, near{&crumpled, 0.5 * std::atof(argv[3])}, hung{&draped, 0.0}, round{&ball, 0.0};
  const auto best = RTC_BUILD_QUALITY_MEDIUM;
  RTCScene moving = scene(device, still, RTC_BUILD_QUALITY_LOW, true);
  report("refit", "embree", runs, [&] {
    RTCGeometry geometry = rtcGetGeometry(moving, 0);
    rtcUpdateGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0);
    rtcCommitGeometry(geometry);
    rtcCommitScene(moving);
    return crumpled.size();
  });
  rtcReleaseScene(moving);
  RTCScene at = scene(device, still, best, false);
  report("pairs", "embree", runs, [&] { return pairs(at, at); });
  rtcReleaseScene(at);
  at = scene(device, near, best, false);
  report("near-pairs", "embree", runs, [&] { return pairs(at, at); });
  rtcReleaseScene(at);
  at = scene(device, hung, best, false);
  RTCScene other = scene(device, round, best, false);
  report("ball-pairs", "embree", runs, [&] { return pairs(at, other); });
}
