// The 18-DOP trees of FCL, on cloth that `cargo bench --bench peers_collide` wrote.
//
//   fcl_collide DIRECTORY RUNS H
//
// Prints lines `WHAT PEER MILLISECONDS COUNT`, the count being of pairs of triangles
// that boxes let through. FCL then tests these with each other, and the time has that too. H is not
// used. FCL also tests triangles that share corners.
//
// Debian: apt-get install libfcl-dev libeigen3-dev
#include <fcl/fcl.h>
#include <fcl/geometry/bvh/BVH_model.h>
#include <fcl/narrowphase/detail/traversal/collision/mesh_collision_traversal_node.h>
#include <fcl/narrowphase/detail/traversal/collision_node.h>

#include "mesh.hpp"

using Volume = fcl::KDOP<double, 18>;
using Model = fcl::BVHModel<Volume>;
using Node = fcl::detail::MeshCollisionTraversalNode<Volume>;

static std::vector<fcl::Vector3d> points(const Mesh& mesh) {
  std::vector<fcl::Vector3d> all(mesh.x.size() / 3);
  for (size_t v = 0; v < all.size(); ++v) all[v] = {mesh.x[3 * v], mesh.x[3 * v + 1], mesh.x[3 * v + 2]};
  return all;
}

static void build(Model& model, const Mesh& mesh) {
  std::vector<fcl::Triangle> triangles(mesh.size());
  for (size_t t = 0; t < mesh.size(); ++t)
    triangles[t].set(mesh.triangles[3 * t], mesh.triangles[3 * t + 1], mesh.triangles[3 * t + 2]);
  model.beginModel();
  model.addSubModel(points(mesh), triangles);
  model.endModel();
}

static size_t pairs(Model& one, Model& two, bool count) {
  const fcl::CollisionRequestd request(size_t(1) << 40, false);
  fcl::CollisionResultd result;
  fcl::Transform3d first = fcl::Transform3d::Identity(), second = first;
  Node node;
  fcl::detail::initialize(node, one, first, two, second, request, result, false, false);
  node.enable_statistics = count;
  node.num_bv_tests = node.num_leaf_tests = 0;
  if (&one == &two)
    fcl::detail::selfCollide<double>(&node, nullptr);
  else
    fcl::detail::collide<double>(&node, nullptr);
  return size_t(node.num_leaf_tests);
}

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "fcl_collide DIRECTORY RUNS H\n"), 2;
  const std::string directory = argv[1];
  const int runs = std::atoi(argv[2]);
  const Mesh crumpled = read(directory, "crumpled"), draped = read(directory, "draped"), ball = read(directory, "ball");
  Model cloth, hung, round;
  build(cloth, crumpled);
  build(hung, draped);
  build(round, ball);
  const auto moved = points(crumpled);
  report("refit", "fcl", runs, [&] {
    cloth.beginReplaceModel();
    cloth.replaceSubModel(moved);
    cloth.endReplaceModel(true, true);
    return crumpled.size();
  });
  report("pairs", "fcl", runs, [&] { return pairs(cloth, cloth, true); });
  report("ball-pairs", "fcl", runs, [&] { return pairs(hung, round, true); });
}
