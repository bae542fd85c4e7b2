// The box trees of Coal, on cloth that `cargo bench --bench peers_collide` wrote.
//
//   coal_collide DIRECTORY RUNS H
//
// Prints lines `WHAT PEER MILLISECONDS COUNT`, the count being of pairs of triangles
// that boxes let through. Coal then tests these with each other, and the time has that too. H is
// not used. Coal also tests triangles that share corners. Its trees have boxes, not volumes of 18
// planes, for the test of these in Coal 3.0 keeps hardly any pair apart.
//
// python3 -m venv VENV && VENV/bin/pip install coal
// COAL_PREFIX=VENV/lib/python3.*/site-packages/cmeel.prefix;
// apt-get install g++ libeigen3-dev
#include <coal/BVH/BVH_model.h>
#include <coal/collision.h>
#include <coal/internal/traversal_node_bvhs.h>
#include <coal/internal/traversal_node_setup.h>
#include <coal/internal/traversal_recurse.h>

#include "mesh.hpp"

using Model = coal::BVHModel<coal::AABB>;
using Node = coal::MeshCollisionTraversalNode<coal::AABB, coal::RelativeTransformationIsIdentity>;

static std::vector<coal::Vec3s> points(const Mesh& mesh) {
  std::vector<coal::Vec3s> all(mesh.x.size() / 3);
  for (size_t v = 0; v < all.size(); ++v) all[v] = {mesh.x[3 * v], mesh.x[3 * v + 1], mesh.x[3 * v + 2]};
  return all;
}

static void build(Model& model, const Mesh& mesh) {
  std::vector<coal::Triangle> triangles(mesh.size());
  for (size_t t = 0; t < mesh.size(); ++t)
    triangles[t].set(mesh.triangles[3 * t], mesh.triangles[3 * t + 1], mesh.triangles[3 * t + 2]);
  model.beginModel();
  model.addSubModel(points(mesh), triangles);
  model.endModel();
}

// Tests a node with itself, for Coal has no such test: each child with itself, and one child with
// the other.
static void itself(Node& node, unsigned at) {
  if (node.isFirstNodeLeaf(at)) return;
  const unsigned left = node.getFirstLeftChild(at), right = node.getFirstRightChild(at);
  itself(node, left);
  itself(node, right);
  coal::CoalScalar bound = 0;
  coal::collisionRecurse(&node, left, right, nullptr, bound);
}

static size_t pairs(Model& one, Model& two) {
  coal::CollisionRequest request(coal::CONTACT, size_t(1) << 40);
  request.enable_contact = false;
  coal::CollisionResult result;
  coal::Transform3s first = coal::Transform3s::Identity(), second = first;
  Node node(request);
  // Two counters, without which it would not say how many pairs there were.
  node.enable_statistics = true;
  coal::initialize(node, one, first, two, second, result);
  if (&one == &two) {
    itself(node, 0);
  } else {
    coal::CoalScalar bound = 0;
    coal::collisionRecurse(&node, 0, 0, nullptr, bound);
  }
  return size_t(node.num_leaf_tests);
}

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "coal_collide DIRECTORY RUNS H\n"), 2;
  const std::string directory = argv[1];
  const int runs = std::atoi(argv[2]);
  const Mesh crumpled = read(directory, "crumpled"), draped = read(directory, "draped"), ball = read(directory, "ball");
  Model cloth, hung, round;
  build(cloth, crumpled);
  build(hung, draped);
  build(round, ball);
  const auto moved = points(crumpled);
  report("refit", "coal", runs, [&] {
    cloth.beginReplaceModel();
    cloth.replaceSubModel(moved);
    cloth.endReplaceModel(true, true);
    return crumpled.size();
  });
  report("pairs", "coal", runs, [&] { return pairs(cloth, cloth); });
  report("ball-pairs", "coal", runs, [&] { return pairs(hung, round); });
}
